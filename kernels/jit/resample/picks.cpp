// SPDX-License-Identifier: Apache-2.0
// Which rows each row of results takes, and how results are stored.
#include "kernels/jit/resample/picks.hpp"

#include <algorithm>
#include <optional>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperations = 1500;  ///< of a row: its code is straight
constexpr int64_t kPiecesPerThread = 4;

/// Nothing where a row takes more than two, or rows are too far from each other.
std::optional<std::vector<PickedRow>> picked_rows(const AxisMap& map, int64_t row_bytes) {
  if (map.from() * row_bytes > INT32_MAX) return {};
  std::vector<PickedRow> rows;
  for (int64_t i = 0; i < map.to(); ++i) {
    const std::span<const Tap> taps = map.taps(i);
    if (taps.empty() || taps.size() > 2) return {};
    const bool single = taps.size() == 1;
    const auto place = [&](const Tap& tap) { return static_cast<int32_t>(tap.source * row_bytes); };
    rows.push_back({.first = place(taps.front()),
                    .second = place(taps.back()),
                    .first_weight = single ? taps[0].weight / 2 : taps[0].weight,
                    .second_weight = single ? taps[0].weight / 2 : taps[1].weight});
  }
  return rows;
}

}  // namespace

bool ResamplePicks::fits(const Problem& p, Isa isa) {
  bool channel_last = false;
  if (isa != Isa::avx512 || refuse_resample_walk(p, channel_last) || channel_last || !p.front.empty()) return false;
  const ResampleWalk walk = resample_walk(p, false);
  const Expr back = back_expression(p);
  const WalkedTensor source = walked(p.in[static_cast<size_t>(front_port(p.step))], p, walk);
  if (source.row_step(walk, walk.x.from()) != 1 || source.y < 0 || reads_coordinates(back)) return false;
  const auto rows_step = [&](const TensorDesc& desc, int least) {
    return walked(desc, p, walk).row_step(walk, walk.x.to()) >= least;
  };
  for (int k : loaded_operands(back))
    if (!rows_step(p.in[static_cast<size_t>(k)], 0)) return false;
  for (const TensorDesc& desc : p.out)
    if (!rows_step(desc, 1)) return false;
  const auto lanes = static_cast<int64_t>(Picks::kLanes);
  const auto vectors = static_cast<size_t>(ceil_div(walk.x.to(), lanes));
  return walk.x.to() >= lanes && walk.x.to() <= PicksKernel::kMostResults && walk.z.most_taps() == 1 &&
         !walk.z.weighted() && picked_rows(walk.y, source.y) && picks_of(walk.x) &&
         loaded_operands(back).size() + p.out.size() <= PicksKernel::kMostOperands &&
         p.out.size() <= JoinedStores::kMostOutputs && expanded(back, p, isa).code.size() * vectors <= kMostOperations;
}

ResamplePicks::ResamplePicks(const Problem& p, const Target& target)
    : walk_(resample_walk(p, false)),
      source_port_(front_port(p.step)),
      back_in_(loaded_operands(back_expression(p))),
      source_(walked(p.in[static_cast<size_t>(source_port_)], p, walk_)),
      rows_(*picked_rows(walk_.y, source_.y)) {
  PT_ASSERT(target.isa == Isa::avx512);
  for (int k : back_in_) back_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  for (const TensorDesc& desc : p.out) out_.push_back(walked(desc, p, walk_));
  const int64_t planes = walk_.outer * walk_.inner * walk_.z.to();
  blocks_ = std::min(walk_.y.to(), ceil_div(kPiecesPerThread * std::max(1, target.threads), planes));

  Lanes back = expanded(back_expression(p), p, Isa::avx512);
  for (Lane& lane : back.code)  // operands in the kernel's order
    if (lane.op == LaneOp::load)
      lane.imm = static_cast<int32_t>(std::ranges::find(back_in_, lane.imm) - back_in_.begin());
  const auto operands = [&](const std::vector<WalkedTensor>& tensors) {
    std::vector<PickOperand> list;
    for (const WalkedTensor& t : tensors) list.push_back({t.dtype, t.row_step(walk_, walk_.x.to()) == 1, t.y});
    return list;
  };
  PicksShape shape{.source = source_.dtype, .places = walk_.x.from(), .results = walk_.x.to()};
  shape.two_rows = walk_.y.weighted() || walk_.y.most_taps() > 1;
  shape.two_places = walk_.x.weighted() || walk_.x.most_taps() > 1;
  shape.picks = *picks_of(walk_.x);
  shape.in = operands(back_tensors_);
  shape.out = operands(out_);
  plain_ = std::make_unique<const PicksKernel>(back, shape);
  if (!exceeds_cache(p)) return;

  const auto at_lines = [](const WalkedTensor& t) {
    return std::ranges::all_of(std::array{t.offset, t.outer, t.inner, t.z, t.y},
                               [](int64_t distance) { return distance % kCacheLine == 0; });
  };
  const auto follow = [&](const WalkedTensor& t) {
    return t.each == out_[0].each && t.each > 1 && t.y == walk_.x.to() * t.each && t.offset == out_[0].offset &&
           t.outer == out_[0].outer && t.inner == out_[0].inner && t.z == out_[0].z && t.offset % t.each == 0;
  };
  joined_ = !std::ranges::all_of(out_, at_lines);
  if (joined_ && !std::ranges::all_of(out_, follow)) return;
  shape.stores = joined_ ? PicksShape::Stores::joined : PicksShape::Stores::streaming;
  streaming_ = std::make_unique<const PicksKernel>(back, shape);
}

Status ResamplePicks::operator()(const RunArgs& args) const {
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

void ResamplePicks::run(const RunArgs& args, int64_t plane, int64_t z, int64_t begin, int64_t end,
                        bool streaming) const {
  std::array<const void*, PicksKernel::kMostOperands> in;
  std::array<void*, PicksKernel::kMostOperands> out;
  for (size_t o = 0; o < back_tensors_.size(); ++o)
    in[o] = back_tensors_[o].at(args.in[static_cast<size_t>(back_in_[o])], walk_, plane, z, begin, 0);
  for (size_t o = 0; o < out_.size(); ++o)
    out[o] = const_cast<std::byte*>(out_[o].at(args.out[o], walk_, plane, z, begin, 0));
  PicksCall call{
      .source = source_.at(args.in[static_cast<size_t>(source_port_)], walk_, plane, walk_.z.taps(z)[0].source, 0, 0),
      .rows = &rows_[static_cast<size_t>(begin)],
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
