// SPDX-License-Identifier: Apache-2.0
// Blocks of result rows: sums of source rows, columns, the back expression.
#include "kernels/jit/resample/shrink.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/flat/row_kernel.hpp"
#include "src/base/cpu.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 96;
constexpr int64_t kVector = 16;
constexpr int64_t kSumFloats = 16384;  ///< of a block's sums: they stay in a second-level cache
constexpr int64_t kPiecesPerThread = 4;

int64_t padded(int64_t floats) { return ceil_div(floats, kVector) * kVector; }

/// How many taps at the front read sources that follow each other.
size_t neighbours(std::span<const Tap> taps) {
  size_t count = 1;
  while (count < taps.size() && taps[count].source == taps[count - 1].source + 1) ++count;
  return count;
}

}  // namespace

bool ResampleShrink::fits(const Problem& p, Isa isa) {
  bool channel_last = false;
  if (refuse_resample_walk(p, channel_last) || channel_last) return false;
  const PlaneWalk walk = joined_plane_walk(p, false, isa);  // joined rows are the channels
  return walk.y.to() * 2 <= walk.y.from();
}

ResampleShrink::ResampleShrink(const Problem& p, const Target& target)
    : walk_(resample_walk(p, false)),
      front_in_(loaded_operands(front_expression(p))),
      back_in_(loaded_operands(back_expression(p))) {
  for (int k : front_in_) front_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  for (int k : back_in_) back_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  for (const TensorDesc& desc : p.out) out_.push_back(walked(desc, p, walk_));
  sum_pitch_ = padded(walk_.x.from() + kVector * ColumnKernel::kMargin);
  result_pitch_ = padded(walk_.x.to());
  const int64_t planes = walk_.outer * walk_.inner * walk_.z.to();
  const int64_t least_blocks = ceil_div(kPiecesPerThread * target.threads, planes);
  block_ = std::clamp<int64_t>(kSumFloats / sum_pitch_, 1, ceil_div(walk_.y.to(), least_blocks));
  blocks_ = ceil_div(walk_.y.to(), block_);
  parts_ = std::min<int64_t>(target.threads, planes * blocks_);
  sums_ = {make_sum(p, target.isa, Fold::none), make_sum(p, target.isa, Fold::sum)};
  for (int first = 0; first < walk_.x.most_taps(); first += ColumnKernel::kMaxTaps)
    columns_.emplace_back(target.isa, walk_.x, 1, std::vector<ColumnGroup::Chunk>{{0, walk_.x.to(), 0}}, first,
                          sum_pitch_ * 4, result_pitch_ * 4);
  make_back(p, target.isa);
}

/// Source rows times their weights, into one row: `fold` adds them to what is there.
ResampleShrink::Kernel ResampleShrink::make_sum(const Problem& p, Isa isa, Fold fold) const {
  RowKernelWriter w;
  std::vector<RowOperand> operands;
  for (const WalkedTensor& t : front_tensors_)
    operands.push_back({t.dtype, t.row_step(walk_, walk_.x.from()) == 1, t.y});
  auto term = w.splice(front_expression(p), front_in_, operands);
  if (walk_.y.weighted()) term = w.builder().mul(term, w.load({Dtype::f32, false, sizeof(Tap)}));
  if (walk_.z.weighted()) term = w.builder().mul(term, w.load({Dtype::f32, false, 0}));
  const RowOperand sums{.dtype = Dtype::f32, .steps = true, .row_bytes = 0, .fold = fold};
  fold == Fold::none ? w.store(sums, term) : w.fold(sums, term);
  // Rows begin inside lines: what is fetched for them would hold up the loads of who reads ahead alone.
  return w.make(isa, walk_.x.from(), false, reads_streams_alone() ? Fetching{} : Fetching::near());
}

void ResampleShrink::make_back(const Problem& p, Isa isa) {
  RowKernelWriter w;
  const auto sum = w.load({Dtype::f32, true, result_pitch_ * 4});
  const auto rows = [&](const std::vector<WalkedTensor>& tensors) {
    std::vector<RowOperand> list;
    for (const WalkedTensor& t : tensors) list.push_back({t.dtype, t.row_step(walk_, walk_.x.to()) == 1, t.y});
    return list;
  };
  w.splice(back_expression(p), back_in_, rows(back_tensors_), rows(out_), sum);
  back_ = w.make(isa, walk_.x.to(), false);
}

Status ResampleShrink::operator()(const RunArgs& args) const {
  const int64_t items = walk_.outer * walk_.inner * walk_.z.to() * blocks_;
  const int64_t cost = items / parts_ * block_ * walk_.x.from();
  parallel_for(parts_, cost, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      float* const sums = scratch().share<float>(args.scratch, part);
      for (int64_t item = items * part / parts_; item < items * (part + 1) / parts_; ++item) {
        const int64_t begin = item % blocks_ * block_, z = item / blocks_ % walk_.z.to();
        const Piece piece{item / blocks_ / walk_.z.to(), z, begin, std::min(walk_.y.to(), begin + block_)};
        run_piece(args, piece, sums, sums + sum_floats());
      }
    }
  });
  return {};
}

void ResampleShrink::run_piece(const RunArgs& args, const Piece& piece, float* sums, float* results) const {
  const int64_t rows = piece.end - piece.begin;
  std::array<const std::byte*, kMaxOperands> planes;
  for (size_t o = 0; o < front_tensors_.size(); ++o)
    planes[o] = front_tensors_[o].at(args.in[static_cast<size_t>(front_in_[o])], walk_, piece.plane, 0, 0, 0);
  for (int64_t row = 0; row < rows; ++row) sum_row(planes.data(), piece.z, piece.begin + row, sums + row * sum_pitch_);
  for (const ColumnGroup& group : columns_) group.run(0, sums, results, rows);
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  size_t k = 0;
  in[k++] = results;
  for (size_t o = 0; o < back_tensors_.size(); ++o)
    in[k++] =
        back_tensors_[o].at(args.in[static_cast<size_t>(back_in_[o])], walk_, piece.plane, piece.z, piece.begin, 0);
  for (size_t o = 0; o < out_.size(); ++o)
    out[o] = const_cast<std::byte*>(out_[o].at(args.out[o], walk_, piece.plane, piece.z, piece.begin, 0));
  (*back_)({in.data(), out.data(), nullptr, rows});
}

/// Row after row, as they lie in memory: several at once, vector by vector, come from there a third slower.
void ResampleShrink::sum_row(const std::byte* const* planes, int64_t z, int64_t y, float* to) const {
  std::array<const void*, kMaxOperands> in;
  void* out = to;
  bool begun = false;
  for (const Tap& tz : walk_.z.taps(z)) {
    for (std::span<const Tap> left = walk_.y.taps(y); !left.empty();) {
      const size_t rows = begun ? neighbours(left) : 1;
      size_t k = 0;
      for (size_t o = 0; o < front_tensors_.size(); ++o)
        in[k++] = planes[o] + tz.source * front_tensors_[o].z + left[0].source * front_tensors_[o].y;
      if (walk_.y.weighted()) in[k++] = &left[0].weight;
      if (walk_.z.weighted()) in[k++] = &tz.weight;
      (*sums_[begun])({in.data(), &out, nullptr, static_cast<int64_t>(rows)});
      left = left.subspan(rows);
      begun = true;
    }
  }
  if (!begun) std::fill_n(to, walk_.x.from(), 0.0F);
}

}  // namespace partita::jit
