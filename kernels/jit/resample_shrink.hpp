// SPDX-License-Identifier: Apache-2.0
// Channel-first resampling to far fewer rows (adaptive averages above all): each result row is summed over z and y
// first, at the width of the source, then resampled along x.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/jit/resample_columns.hpp"
#include "kernels/jit/resample_walk.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

class ResampleShrink {
 public:
  /// Whether a problem that refuse_resample takes is done better this way.
  static bool fits(const Problem& p, Isa isa);
  ResampleShrink(const Problem& p, const Target& target);
  size_t scratch_bytes() const { return scratch().bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  using Kernel = std::shared_ptr<const FlatKernel>;
  static constexpr size_t kMostTaps = 16;  ///< summed in one call

  /// Result rows [begin, end) of a plane.
  struct Piece {
    int64_t plane, z, begin, end;
  };
  int64_t sum_floats() const { return block_ * sum_pitch_; }
  int64_t result_floats() const { return block_ * result_pitch_; }
  ThreadScratch scratch() const {
    return {parts_, (sum_floats() + result_floats()) * static_cast<int64_t>(sizeof(float))};
  }
  /// Taps of one call where `all` are shared out evenly; at least one, so that no taps are one call.
  size_t group_of(size_t all) const {
    if (all <= most_) return std::max<size_t>(1, all);
    const size_t calls = (all + most_ - 1) / most_;
    return (all + calls - 1) / calls;
  }
  void make_sums(const Problem& p, Isa isa);
  Kernel make_sum(const Expr& front, Isa isa, size_t taps, bool accumulate) const;
  void make_back(const Problem& p, Isa isa);
  void run_piece(const RunArgs& args, const Piece& piece, float* sums, float* results) const;
  /// `planes`: where the plane of each operand of the front expression starts.
  void sum_row(const std::byte* const* planes, int64_t z, int64_t y, float* to) const;

  ResampleWalk walk_;
  std::vector<int> front_in_, back_in_;
  std::vector<WalkedTensor> front_tensors_, back_tensors_, out_;
  size_t most_ = kMostTaps;
  std::vector<Kernel> sums_[2];  // [accumulate][taps]
  std::vector<ColumnGroup> columns_;
  Kernel back_;
  int64_t block_ = 1, blocks_ = 1, parts_ = 1, sum_pitch_ = 0, result_pitch_ = 0;
};

}  // namespace partita::jit
