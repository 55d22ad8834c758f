// SPDX-License-Identifier: Apache-2.0
// Which rows each row of results takes, and how results are stored.
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

constexpr size_t kMostOperations = 1500;  ///< of a row: its code is straight
constexpr int64_t kPiecesPerThread = 4;
constexpr size_t kFetchedRows = 2;  ///< so many of the rows that are read for one are new, at the most

/// Of all results along z and y; nothing where one takes none or too many, or rows are too far from each other.
std::optional<std::vector<PickedRow>> picked_rows(const PlaneWalk& walk, const WalkedTensor& source) {
  const auto most_z = static_cast<size_t>(walk.z.most_taps()), most_y = static_cast<size_t>(walk.y.most_taps());
  if (most_z * most_y > kMostPicked || source.z < 0 || source.y < 0) return {};
  if (walk.z.from() * source.z + walk.y.from() * source.y > INT32_MAX) return {};
  std::vector<PickedRow> rows;
  for (int64_t z = 0; z < walk.z.to(); ++z)
    for (int64_t y = 0; y < walk.y.to(); ++y) {
      if (walk.z.taps(z).empty() || walk.y.taps(y).empty()) return {};
      PickedRow& row = rows.emplace_back();
      size_t count = 0;
      for (const Tap& tz : split_taps(walk.z.taps(z), most_z))
        for (const Tap& ty : split_taps(walk.y.taps(y), most_y)) {
          row.from[count] = static_cast<int32_t>(tz.source * source.z + ty.source * source.y);
          row.weights[count++] = tz.weight * ty.weight;
        }
    }
  return rows;
}

/// Whether some share is not 1, or becomes less where taps are split.
bool is_weighted(const AxisMap& map) {
  bool weighted = map.weighted();
  for (int64_t place = 0; place < map.to() && !weighted; ++place)
    weighted = static_cast<int64_t>(map.taps(place).size()) < map.most_taps();
  return weighted;
}

}  // namespace

bool PickedResults::fits(const Problem& p, const PlaneWalk& walk, Isa isa) {
  if (isa != Isa::avx512) return false;
  const Expr back = back_expression(p);
  const WalkedTensor source = walked(p.in[static_cast<size_t>(front_port(p.step))], p, walk);
  if (source.row_step(walk, walk.x.from()) != 1 || reads_coordinates(back)) return false;
  const auto rows_step = [&](const TensorDesc& desc, int least) {
    return walked(desc, p, walk).row_step(walk, walk.x.to()) >= least;
  };
  for (int k : loaded_operands(back))
    if (!rows_step(p.in[static_cast<size_t>(k)], 0)) return false;
  for (const TensorDesc& desc : p.out)
    if (!rows_step(desc, 1)) return false;
  const auto lanes = static_cast<int64_t>(Picks::kLanes);
  const auto vectors = static_cast<size_t>(ceil_div(walk.x.to(), lanes));
  return walk.x.to() >= lanes && walk.x.to() <= PicksKernel::kMostResults &&
         loaded_operands(back).size() + p.out.size() <= PicksKernel::kMostOperands &&
         p.out.size() <= PicksKernel::kMostOutputs && picked_rows(walk, source) && picks_of(walk.x) &&
         expanded(back, p, isa).code.size() * vectors <= kMostOperations;
}

PickedResults::PickedResults(const Problem& p, PlaneWalk walk, Fold fold, const Target& target)
    : walk_(std::move(walk)),
      source_port_(front_port(p.step)),
      back_in_(loaded_operands(back_expression(p))),
      source_(walked(p.in[static_cast<size_t>(source_port_)], p, walk_)),
      rows_(*picked_rows(walk_, source_)) {
  PT_ASSERT(target.isa == Isa::avx512);
  for (int k : back_in_) back_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  for (const TensorDesc& desc : p.out) out_.push_back(walked(desc, p, walk_));
  const int64_t planes = walk_.outer * walk_.inner * walk_.z.to();
  blocks_ = std::min(walk_.y.to(), ceil_div(kPiecesPerThread * std::max(1, target.threads), planes));

  const Lanes back = numbered_back(p, back_in_);
  const auto operands = [&](const std::vector<WalkedTensor>& tensors) {
    std::vector<TurnOperand> list;
    for (const WalkedTensor& t : tensors) list.push_back({t.dtype, t.row_step(walk_, walk_.x.to()) == 1, t.y});
    return list;
  };
  const bool sums = fold == Fold::sum;
  PicksShape shape{.places = walk_.x.from(), .results = walk_.x.to()};
  shape.rows = {.dtype = source_.dtype,
                .count = static_cast<size_t>(walk_.z.most_taps() * walk_.y.most_taps()),
                .fold = fold,
                .weighted = sums && (is_weighted(walk_.z) || is_weighted(walk_.y)),
                .fetched_rows = kFetchedRows};
  shape.weighted = sums && is_weighted(walk_.x);
  shape.picks = *picks_of(walk_.x);
  shape.in = operands(back_tensors_);
  shape.out = operands(out_);
  const TensorDesc& source = p.in[static_cast<size_t>(source_port_)];
  const bool from_memory = leaves_the_caches(elements(source.dims) * bits_of(source.dtype) / 8);
  if (from_memory && !reads_streams_alone()) shape.rows.fetching = Fetching::in_turns();
  plain_ = std::make_unique<const PicksKernel>(back, shape);
  if (!exceeds_cache(p)) return;

  const auto follow = [&](const WalkedTensor& t) {
    return t.each == out_[0].each && t.each > 1 && t.y == walk_.x.to() * t.each && t.offset == out_[0].offset &&
           t.outer == out_[0].outer && t.inner == out_[0].inner && t.z == out_[0].z && t.offset % t.each == 0;
  };
  joined_ = !std::ranges::all_of(out_, [](const WalkedTensor& t) { return t.at_cache_lines(/*places=*/false); });
  if (joined_ && !std::ranges::all_of(out_, follow)) return;
  shape.stores = joined_ ? PicksShape::Stores::joined : PicksShape::Stores::streaming;
  shape.rows.fetching = Fetching::of_few_streams();
  streaming_ = std::make_unique<const PicksKernel>(back, shape);
}

Status PickedResults::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t to_z = walk_.z.to(), rows = walk_.y.to();
  const int64_t items = walk_.outer * walk_.inner * to_z * blocks_;
  parallel_for(items, ceil_div(rows, blocks_) * walk_.x.to(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks_, plane = i / blocks_;
      run(args, plane / to_z, plane % to_z, rows * block / blocks_, rows * (block + 1) / blocks_, streaming);
    }
  });
  return {};
}

void PickedResults::run(const RunArgs& args, int64_t plane, int64_t z, int64_t begin, int64_t end,
                        bool streaming) const {
  std::array<const void*, PicksKernel::kMostOperands> in;
  std::array<void*, PicksKernel::kMostOperands> out;
  for (size_t o = 0; o < back_tensors_.size(); ++o)
    in[o] = back_tensors_[o].at(args.in[static_cast<size_t>(back_in_[o])], walk_, plane, z, begin, 0);
  for (size_t o = 0; o < out_.size(); ++o)
    out[o] = const_cast<std::byte*>(out_[o].at(args.out[o], walk_, plane, z, begin, 0));
  PicksCall call{.source = source_.at(args.in[static_cast<size_t>(source_port_)], walk_, plane, 0, 0, 0),
                 .rows = &rows_[static_cast<size_t>(z * walk_.y.to() + begin)],
                 .count = end - begin,
                 .in = in.data(),
                 .out = out.data(),
                 .joined = nullptr,
                 .pending = 0};
  if (!streaming || !joined_) return (streaming ? *streaming_ : *plain_)(call);
  const int64_t each = out_[0].each;
  const JoinedCall joined({out.data(), out_.size()}, each, JoinedStores::together(Isa::avx512, each),
                          (end - begin) * walk_.x.to());
  call.joined = joined.places();
  call.pending = joined.pending();
  (*streaming_)(call);
  joined.finish();
}

}  // namespace partita::jit
