// SPDX-License-Identifier: Apache-2.0
// Channel-first resampling to far fewer rows (adaptive averages above all): each result row is summed over z and y
// first, at the width of the source, then resampled along x.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "kernels/jit/resample/columns.hpp"
#include "kernels/jit/resample/walk.hpp"
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

  /// Result rows [begin, end) of a plane.
  struct Piece {
    int64_t plane, z, begin, end;
  };
  int64_t sum_floats() const { return block_ * sum_pitch_; }
  int64_t result_floats() const { return block_ * result_pitch_; }
  ThreadScratch scratch() const {
    return {parts_, (sum_floats() + result_floats()) * static_cast<int64_t>(sizeof(float))};
  }
  Kernel make_sum(const Problem& p, Isa isa, Fold fold) const;
  void make_back(const Problem& p, Isa isa);
  void run_piece(const RunArgs& args, const Piece& piece, float* sums, float* results) const;
  /// `planes`: where the plane of each operand of the front expression starts.
  void sum_row(const std::byte* const* planes, int64_t z, int64_t y, float* to) const;

  PlaneWalk walk_;
  std::vector<int> front_in_, back_in_;
  std::vector<WalkedTensor> front_tensors_, back_tensors_, out_;
  std::array<Kernel, 2> sums_;  // of the first source row; of those added to it
  std::vector<ColumnGroup> columns_;
  Kernel back_;
  int64_t block_ = 1, blocks_ = 1, parts_ = 1, sum_pitch_ = 0, result_pitch_ = 0;
};

}  // namespace partita::jit
