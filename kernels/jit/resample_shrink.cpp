// SPDX-License-Identifier: Apache-2.0
// Blocks of result rows: sums of source rows, columns, the back expression.
#include "kernels/jit/resample_shrink.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/row_kernel.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 96;
constexpr int64_t kVector = 16;
constexpr int64_t kSumFloats = 16384;  ///< of a block's sums: they stay in a second-level cache
constexpr int64_t kPiecesPerThread = 4;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t padded(int64_t floats) { return ceil_div(floats, kVector) * kVector; }

}  // namespace

bool ResampleShrink::fits(const Problem& p, Isa isa) {
  bool channel_last = false;
  if (refuse_resample_walk(p, channel_last) || channel_last) return false;
  const ResampleWalk walk = joined_walk(p, false, isa);  // joined rows are the channels
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
  // What a call reads: the sums so far, and for each tap what the front expression loads and two weights.
  most_ = std::min(kMostTaps, (kMaxOperands - 1) / (front_in_.size() + 2));
  make_sums(p, target.isa);
  for (int first = 0; first < walk_.x.most_taps(); first += ColumnKernel::kMaxTaps)
    columns_.emplace_back(target.isa, walk_.x, 1, std::vector<ColumnGroup::Chunk>{{0, walk_.x.to(), 0}}, first,
                          sum_pitch_ * 4, result_pitch_ * 4);
  make_back(p, target.isa);
}

void ResampleShrink::make_sums(const Problem& p, Isa isa) {
  const Expr front = front_expression(p);
  for (auto& list : sums_) list.resize(most_ + 1);
  for (int64_t z = 0; z < walk_.z.to(); ++z)
    for (int64_t y = 0; y < walk_.y.to(); ++y) {
      const size_t all = walk_.z.taps(z).size() * walk_.y.taps(y).size(), group = group_of(all);
      for (size_t done = 0; done == 0 || done < all; done += group) {
        Kernel& kernel = sums_[done > 0 ? 1 : 0][std::min(group, all - done)];
        if (!kernel) kernel = make_sum(front, isa, std::min(group, all - done), done > 0);
      }
    }
}

/// sum over taps of front(row) * weights
ResampleShrink::Kernel ResampleShrink::make_sum(const Expr& front, Isa isa, size_t taps, bool accumulate) const {
  RowKernelWriter w;
  const RowOperand result{Dtype::f32, true, sum_pitch_ * 4}, weight{Dtype::f32, false, 0};
  std::vector<RowOperand> operands;
  for (const WalkedTensor& t : front_tensors_)
    operands.push_back({t.dtype, t.row_step(walk_, walk_.x.from()) == 1, t.y});
  auto sum = accumulate ? w.load(result) : w.builder().constant(0);
  for (size_t k = 0; k < taps; ++k) {
    auto term = w.splice(front, front_in_, operands);
    if (walk_.y.weighted()) term = w.builder().mul(term, w.load(weight));
    if (walk_.z.weighted()) term = w.builder().mul(term, w.load(weight));
    sum = k == 0 && !accumulate ? term : w.builder().add(sum, term);
  }
  w.store(result, sum);
  return w.make(isa, walk_.x.from(), false, kPrefetchFromMemory);
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
  for (int64_t row = 0; row < rows; ++row)
    sum_row(planes.data(), piece.z, piece.begin + row, sums + row * sum_pitch_);
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

void ResampleShrink::sum_row(const std::byte* const* planes, int64_t z, int64_t y, float* to) const {
  std::array<const void*, kMaxOperands> in;
  void* out = to;
  const auto z_taps = walk_.z.taps(z), y_taps = walk_.y.taps(y);
  const size_t all = z_taps.size() * y_taps.size(), group = group_of(all);
  auto at_z = z_taps.begin();
  auto at_y = y_taps.begin();
  for (size_t done = 0; done == 0 || done < all; done += group) {
    const size_t taps = std::min(group, all - done);
    size_t k = 0;
    if (done > 0) in[k++] = to;
    for (size_t t = 0; t < taps; ++t) {
      const Tap &tz = *at_z, &ty = *at_y;
      if (++at_y == y_taps.end()) {
        at_y = y_taps.begin();
        ++at_z;
      }
      for (size_t o = 0; o < front_tensors_.size(); ++o)
        in[k++] = planes[o] + tz.source * front_tensors_[o].z + ty.source * front_tensors_[o].y;
      if (walk_.y.weighted()) in[k++] = &ty.weight;
      if (walk_.z.weighted()) in[k++] = &tz.weight;
    }
    (*sums_[done > 0 ? 1 : 0][taps])({in.data(), &out, nullptr, 1});
  }
}

}  // namespace partita::jit
