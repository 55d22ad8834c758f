// SPDX-License-Identifier: Apache-2.0
// Source rows resampled along x.
#include "kernels/jit/resample/rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 96;
constexpr int64_t kVector = 16;  ///< channels that fill a vector
constexpr int64_t kMargin = 16 * ColumnKernel::kMargin;
constexpr size_t kLeastMean = 3, kMostMean = 64;  ///< places of a mean that a stencil takes: code is written for each
constexpr int64_t kFarthestPlace = 1 << 24;       ///< bytes from place to place, so that an address reaches them all

std::vector<int32_t> every_position(int64_t extent) {
  std::vector<int32_t> list(static_cast<size_t>(extent));
  for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int32_t>(i);
  return list;
}

}  // namespace

const char* refuse_resample_operands(const Problem& p) {
  const size_t front = loaded_operands(front_expression(p)).size(), back = loaded_operands(back_expression(p)).size();
  const size_t most = std::max(1 + (front + 1) * kGroupedTaps, 1 + 3 * kGroupedTaps + back);
  return most > kMaxOperands || p.out.size() > kMaxOperands ? "too many operands" : nullptr;
}

ResampleRows::ResampleRows(const Problem& p, Isa isa, const PlaneWalk& walk, const ResampleBlocks& blocks)
    : walk_(walk), blocks_(blocks), front_(front_expression(p)) {
  front_in_ = loaded_operands(front_);
  for (int k : front_in_) in_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk));
  work_ = elements(p.in[static_cast<size_t>(front_port(p.step))].dims);
  plan_places(p.attrs);
  if (permutes())
    plan_permutation(isa);
  else
    make_places(isa);
}

/// Many places that do not follow each other regularly are many calls; few channels do not fill a vector.
bool ResampleRows::permutes() const {
  if (!walk_.channel_last) return true;
  for (const WalkedTensor& t : in_)
    if (t.row_step(walk_, walk_.x.from()) < 0) return false;
  size_t calls = 0;
  for (const auto& list : stretches_) calls += list.size();
  const bool irregular = static_cast<int64_t>(calls) * 4 > walk_.x.to();
  return walk_.channels < kVector || (walk_.channels < kPermutedChannels && irregular);
}

void ResampleRows::plan_permutation(Isa isa) {
  stretches_.clear();
  for (const XChunk& c : blocks_.chunks) copy_places_ = std::max(copy_places_, c.from_end - c.from);
  copy_floats_ = (copy_places_ * walk_.channels + kMargin + 15) / 16 * 16;
  scratch_rows_ = blocks_.rows;
  std::vector<ColumnGroup::Chunk> chunks;
  for (const XChunk& c : blocks_.chunks) {
    starts_.push_back(std::min(c.from, walk_.x.from() - copy_places_));
    chunks.push_back({c.begin, c.end, starts_.back()});
  }
  for (int first = 0; first < walk_.x.most_taps(); first += ColumnKernel::kMaxTaps)
    groups_.emplace_back(isa, walk_.x, walk_.channels, chunks, first, copy_floats_ * 4, blocks_.row_floats * 4);
  RowKernelWriter w;
  std::vector<RowOperand> operands;
  for (const WalkedTensor& t : in_) operands.push_back({t.dtype, t.row_step(walk_, walk_.x.from()) == 1, t.y});
  w.store({Dtype::f32, true, copy_floats_ * 4}, w.splice(front_, front_in_, operands));
  copy_ = w.make(isa, copy_places_ * walk_.channels, false);
}

void ResampleRows::plan_places(const Attrs& attrs) {
  const std::vector<int32_t> position = every_position(walk_.x.from());
  x_step_ = stretch_step(walk_.x, attrs, position);
  for (const XChunk& c : blocks_.chunks) {
    stretches_.emplace_back();
    for (TapStretch& s : tap_stretches(walk_.x, c.begin, c.end, x_step_, position))
      stretches_.back().push_back({std::move(s)});
  }
}

void ResampleRows::make_places(Isa isa) {
  std::map<size_t, std::shared_ptr<const Stencil>> means;
  for (auto& list : stretches_)
    for (Places& places : list) {
      const size_t all = places.taps.positions.size();
      if (are_means(places.taps)) {
        auto& mean = means[all];
        if (!mean) mean = make_mean(isa, all);
        places.mean = mean;
        continue;
      }
      for (size_t taps = 0; taps == 0 || taps < all; taps += kGroupedTaps) {
        const size_t group = std::min<size_t>(kGroupedTaps, all - taps);
        Kernel& kernel = places_[taps > 0 ? 1 : 0][group];
        if (!kernel) kernel = make_place(isa, group, taps > 0);
      }
    }
}

/// Means of places that follow each other, which are taken as they are: one after the other, as they lie in memory,
/// come from there faster than side by side.
bool ResampleRows::are_means(const TapStretch& stretch) const {
  const size_t taps = stretch.positions.size(), count = static_cast<size_t>(stretch.count);
  if (taps < kLeastMean || taps > kMostMean || !walk_.x.weighted()) return false;
  if (front_.code.size() != 1 || front_.code[0].op != ExprOp::load || in_[0].dtype == Dtype::s32 ||
      in_[0].channel_step(walk_) != 1 || in_[0].x % in_[0].each != 0 || in_[0].x > kFarthestPlace)
    return false;
  for (size_t t = 1; t < taps; ++t) {
    if (stretch.positions[t] != stretch.positions[t - 1] + 1) return false;
    const auto weights = std::span(stretch.weights).subspan(t * count, count);
    if (!std::ranges::equal(weights, std::span(stretch.weights).first(count))) return false;
  }
  return true;
}

/// sum over taps of the places, times the weight of one
std::shared_ptr<const Stencil> ResampleRows::make_mean(Isa isa, size_t taps) const {
  const WalkedTensor& t = in_[0];
  const RowOperand weight{Dtype::f32, false, 4}, result{Dtype::f32, true, x_step_.step * walk_.channels * 4};
  StencilShape shape{.rows = {.length = walk_.channels, .in = {weight}, .out = {result}},
                     .fold = Fold::sum,
                     .dtype = t.dtype,
                     .taps = {},
                     .row_bytes = t.x * x_step_.shift};
  for (size_t k = 0; k < taps; ++k) shape.taps.push_back(static_cast<int64_t>(k) * t.x / t.each);
  shape.fetched = shape.taps;
  Expr mean, stored;
  ExprBuilder(stored).store(0, ExprBuilder(stored).skeleton());
  const auto value = ExprBuilder(mean).mul(ExprBuilder(mean).skeleton(), ExprBuilder(mean).load(0));
  return make_stencil(isa, shape, std::move(mean), value, stored, {});
}

/// sum over taps of front(place) * weight, for stretches of places
ResampleRows::Kernel ResampleRows::make_place(Isa isa, size_t taps, bool accumulate) const {
  RowKernelWriter w;
  const RowOperand result{Dtype::f32, true, x_step_.step * walk_.channels * 4};
  auto sum = accumulate ? w.load(result) : w.builder().constant(0);
  // Where results are far fewer, the next one reads other places, which nobody has fetched.
  const int64_t places = walk_.x.from() / walk_.x.to();
  const auto fetching = [&](const WalkedTensor& t) {
    const bool fetched = places > 1 && t.x > 0;
    return fetched ? Fetching::near(static_cast<int>(std::min<int64_t>(places * t.x, INT32_MAX / 2))) : Fetching{};
  };
  for (size_t k = 0; k < taps; ++k) {
    std::vector<RowOperand> operands;
    for (const WalkedTensor& t : in_)
      operands.push_back({.dtype = t.dtype,
                          .steps = t.channel_step(walk_) == 1,
                          .row_bytes = t.x * x_step_.shift,
                          .fetching = fetching(t)});
    auto term = w.splice(front_, front_in_, operands);
    if (walk_.x.weighted()) term = w.builder().mul(term, w.load({Dtype::f32, false, 4}));
    sum = k == 0 && !accumulate ? term : w.builder().add(sum, term);
  }
  w.store(result, sum);
  return w.make(isa, walk_.channels, false);
}

void ResampleRows::prepare(const RunArgs& args, const ResamplePiece& piece, int64_t z, float* scratch,
                           float* to) const {
  const YBlock& block = blocks_.blocks[piece.block];
  if (block.rows == 0) return;
  int64_t row = 0;
  for (const RowRun& run : block.runs) {
    if (copy_) {
      copy(args, piece, z, run, scratch + row * copy_floats_);
    } else {
      for (int64_t i = 0; i < run.count; ++i)
        sum_places(args, piece, z, run.first + i, to + (row + i) * blocks_.row_floats);
    }
    row += run.count;
  }
  for (const ColumnGroup& group : groups_) group.run(piece.chunk, scratch, to, block.rows);
}

void ResampleRows::copy(const RunArgs& args, const ResamplePiece& piece, int64_t z, const RowRun& run,
                        float* to) const {
  std::array<const void*, kMaxOperands> in;
  for (size_t k = 0; k < in_.size(); ++k) {
    const WalkedTensor& t = in_[k];
    const void* base = args.in[static_cast<size_t>(front_in_[k])];
    in[k] = t.at(base, walk_, piece.plane, z, run.first, starts_[piece.chunk]);
  }
  void* out = to;
  (*copy_)({in.data(), &out, nullptr, run.count});
}

const std::byte* ResampleRows::source(const RunArgs& args, const ResamplePiece& piece, int64_t z, int64_t y, int64_t x,
                                      size_t operand) const {
  return in_[operand].at(args.in[static_cast<size_t>(front_in_[operand])], walk_, piece.plane, z, y, x);
}

void ResampleRows::sum_places(const RunArgs& args, const ResamplePiece& piece, int64_t z, int64_t y, float* to) const {
  std::array<const void*, kMaxOperands> in;
  for (const auto& [s, mean] : stretches_[piece.chunk]) {
    void* out = to + (s.first - blocks_.chunks[piece.chunk].begin) * walk_.channels;
    if (mean) {
      const void *first = source(args, piece, z, y, s.positions[0], 0), *weights = s.weights.data();
      (*mean)({&first, &weights, &out, s.count});
      continue;
    }
    for (size_t taps = 0, all = s.positions.size(); taps == 0 || taps < all; taps += kGroupedTaps) {
      const size_t group = std::min<size_t>(kGroupedTaps, all - taps);
      size_t k = 0;
      if (taps > 0) in[k++] = out;
      for (size_t t = taps; t < taps + group; ++t) {
        for (size_t o = 0; o < in_.size(); ++o) in[k++] = source(args, piece, z, y, s.positions[t], o);
        if (walk_.x.weighted()) in[k++] = &s.weights[t * static_cast<size_t>(s.count)];
      }
      (*places_[taps > 0 ? 1 : 0][group])({in.data(), &out, nullptr, s.count});
    }
  }
}

}  // namespace partita::jit
