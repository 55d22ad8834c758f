// SPDX-License-Identifier: Apache-2.0
// What can be picked, how results are stored, and the walk over them.
#include "kernels/jit/taps/picks.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperations = 1500;  ///< of a turn: its code is straight
constexpr int64_t kPiecesPerThread = 4;
constexpr size_t kFetchedRows = 2;  ///< so many of the rows that are read for one are new, at the most

/// What is made one after the other; empty where it cannot be picked.
std::vector<PicksView> parts_of(const Problem& p, const PlaneWalk& walk) {
  const std::optional<PicksView> view = picks_view(p, walk);
  if (!view) return {};
  std::vector<PicksView> parts = in_turns_of_rows(*view);
  if (parts.empty() && walk.x.to() >= static_cast<int64_t>(Picks::kLanes)) parts.push_back(*view);
  return parts;
}

}  // namespace

bool PickedResults::fits(const Problem& p, const PlaneWalk& walk, Isa isa) {
  if (isa != Isa::avx512) return false;
  const Expr back = back_expression(p);
  if (reads_coordinates(back) || loaded_operands(back).size() + p.out.size() > PicksKernel::kMostOperands ||
      p.out.size() > PicksKernel::kMostOutputs)
    return false;
  const std::vector<PicksView> parts = parts_of(p, walk);
  const size_t operations = expanded(back, p, isa).code.size();
  const auto is_picked = [&](const PicksView& part) {
    const int64_t results = part.walk.x.to(), vectors = ceil_div(results, static_cast<int64_t>(Picks::kLanes));
    return results <= PicksKernel::kMostResults && operations * static_cast<size_t>(vectors) <= kMostOperations &&
           picks_of(part.walk.x);
  };
  return !parts.empty() && std::ranges::all_of(parts, is_picked);
}

PickedResults::PickedResults(const Problem& p, const PlaneWalk& walk, Fold fold, const Target& target) {
  PT_ASSERT(target.isa == Isa::avx512);
  for (PicksView& view : parts_of(p, walk))  // those that are left over are too few to go past the caches
    parts_.push_back(make_part(p, std::move(view), fold, std::max(1, target.threads), parts_.empty()));
}

PickedResults::Part PickedResults::make_part(const Problem& p, PicksView view, Fold fold, int threads, bool streams) {
  Part part{.view = std::move(view)};
  const PicksView& v = part.view;
  const PlaneWalk& walk = v.walk;
  part.blocks = std::min(walk.y.to(), ceil_div(kPiecesPerThread * threads, v.planes() * walk.z.to()));

  const Lanes back = numbered_back(p, v.in_ports);
  const auto operands = [&](const std::vector<WalkedTensor>& tensors) {
    std::vector<TurnOperand> list;
    for (const WalkedTensor& t : tensors) list.push_back({t.dtype, t.row_step(walk, walk.x.to()) == 1, t.y});
    return list;
  };
  const bool sums = fold == Fold::sum;
  PicksShape shape{.places = v.places, .results = walk.x.to(), .together = v.together};
  shape.rows = {.dtype = v.source.dtype,
                .count = v.row_taps,
                .fold = fold,
                .weighted = sums && v.rows_weighted,
                .fetched_rows = kFetchedRows};
  shape.weighted = sums && is_weighted(walk.x);
  shape.picks = *picks_of(walk.x);
  shape.in = operands(v.in);
  shape.out = operands(v.out);
  const TensorDesc& source = p.in[static_cast<size_t>(v.source_port)];
  const bool from_memory = leaves_the_caches(elements(source.dims) * bits_of(source.dtype) / 8);
  if (from_memory && !reads_streams_alone()) shape.rows.fetching = Fetching::in_turns();
  part.plain = std::make_unique<const PicksKernel>(back, shape);
  if (!streams || !exceeds_cache(p)) return part;

  const WalkedTensor& first = v.out[0];
  const auto follow = [&](const WalkedTensor& t) {
    return t.each == first.each && t.each > 1 && t.y == walk.x.to() * t.each && t.offset == first.offset &&
           t.outer == first.outer && t.inner == first.inner && t.z == first.z && t.offset % t.each == 0;
  };
  part.joined = !std::ranges::all_of(v.out, [](const WalkedTensor& t) { return t.at_cache_lines(/*places=*/false); });
  if (part.joined && !std::ranges::all_of(v.out, follow)) return part;
  shape.stores = part.joined ? PicksShape::Stores::joined : PicksShape::Stores::streaming;
  shape.rows.fetching = Fetching::of_few_streams();
  part.streaming = std::make_unique<const PicksKernel>(back, shape);
  return part;
}

Status PickedResults::operator()(const RunArgs& args) const {
  const bool aligned = outputs_aligned(args);
  for (const Part& part : parts_) part.run(args, aligned && part.streaming);
  return {};
}

void PickedResults::Part::run(const RunArgs& args, bool streams) const {
  const PlaneWalk& walk = view.walk;
  const int64_t to_z = walk.z.to(), turns = walk.y.to();
  const int64_t items = view.planes() * to_z * blocks;
  const int64_t results = ceil_div(turns, blocks) * walk.x.to(),
                sources = results * walk.x.from() * walk.y.from() / (walk.x.to() * walk.y.to());
  parallel_for(items, std::max(results, sources), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks, plane = i / blocks;
      run(args, plane / to_z, plane % to_z, turns * block / blocks, turns * (block + 1) / blocks, streams);
    }
    if (streams) end_streaming();
  });
}

void PickedResults::Part::run(const RunArgs& args, int64_t plane, int64_t z, int64_t begin, int64_t end,
                              bool streams) const {
  const PicksView& v = view;
  std::array<const void*, PicksKernel::kMostOperands> in;
  std::array<void*, PicksKernel::kMostOperands> out;
  for (size_t o = 0; o < v.in.size(); ++o)
    in[o] = v.in[o].at(args.in[static_cast<size_t>(v.in_ports[o])], v.walk, plane, z, begin, 0);
  for (size_t o = 0; o < v.out.size(); ++o)
    out[o] = const_cast<std::byte*>(v.out[o].at(args.out[o], v.walk, plane, z, begin, 0));
  PicksCall call{.source = v.source.at(args.in[static_cast<size_t>(v.source_port)], v.walk, plane, 0, 0, 0),
                 .rows = v.rows_of(z, begin),
                 .count = end - begin,
                 .in = in.data(),
                 .out = out.data(),
                 .joined = nullptr,
                 .pending = 0};
  if (!streams || !joined) return (streams ? *streaming : *plain)(call);
  const int64_t each = v.out[0].each;
  const JoinedCall shared({out.data(), v.out.size()}, each, JoinedStores::together(Isa::avx512, each),
                          (end - begin) * v.walk.x.to());
  call.joined = shared.places();
  call.pending = shared.pending();
  (*streaming)(call);
  shared.finish();
}

}  // namespace partita::jit
