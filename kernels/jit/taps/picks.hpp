// SPDX-License-Identifier: Apache-2.0
// Results that take few places along each axis (interpolation to about as many places or more, its gradients to about
// half as many, poolings of few cells): picked from registers, row after row. Channel-first, or channel-last with so few
// channels that those of a place fill no vector.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/jit/taps/picks_kernel.hpp"
#include "kernels/jit/taps/planes.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class PickedResults {
 public:
  static constexpr int64_t kFewChannels = 24;  ///< channel-last, at the most

  /// For a problem with an empty front, its source and outputs of types with generated conversions; `walk` says what
  /// each result takes, channel-last with the channels in its rows.
  static bool fits(const Problem& p, const PlaneWalk& walk, Isa isa);

  /// Results are sums, or maxima of what has weight 1. Throws Xbyak::Error where there is no memory for code.
  PickedResults(const Problem& p, PlaneWalk walk, Fold fold, const Target& target);
  Status operator()(const RunArgs& args) const;

 private:
  /// Result rows [begin, end) of a plane.
  void run(const RunArgs& args, int64_t plane, int64_t z, int64_t begin, int64_t end, bool streaming) const;

  PlaneWalk walk_;
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
