// SPDX-License-Identifier: Apache-2.0
// Channel-first resampling whose results take few places along each axis (interpolation to about as many places or
// more, its gradients to about half as many): picked from registers, row after row, without prepared rows.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/jit/resample/picks_kernel.hpp"
#include "kernels/jit/resample/walk.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class ResamplePicks {
 public:
  /// Whether the problem is of that kind; it must not be refused.
  static bool fits(const Problem& p, Isa isa);

  ResamplePicks(const Problem& p, const Target& target);
  Status operator()(const RunArgs& args) const;

 private:
  /// Result rows [begin, end) of a plane.
  void run(const RunArgs& args, int64_t plane, int64_t z, int64_t begin, int64_t end, bool streaming) const;

  ResampleWalk walk_;
  int source_port_;
  std::vector<int> back_in_;
  WalkedTensor source_;
  std::vector<WalkedTensor> back_tensors_, out_;
  std::vector<PickedRow> rows_;
  int64_t blocks_ = 1;  ///< of rows of a plane
  std::unique_ptr<const PicksKernel> plain_, streaming_;
  bool joined_ = false;
};

}  // namespace partita::jit
