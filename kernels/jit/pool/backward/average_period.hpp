// SPDX-License-Identifier: Apache-2.0
// Gradients of average poolings, channel-last, whose windows lie apart and overlap by less than half.
#pragma once

#include <vector>

#include "kernels/jit/pool/backward/average_period_kernel.hpp"
#include "kernels/jit/pool/backward/period_walk.hpp"

namespace partita::jit {

/// What is kept of a row are its windows' gradients; behind them lie sums of a column of windows.
class AveragePeriodPool final : public PeriodWalk<AveragePeriodKernel> {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  AveragePeriodPool(const Problem& problem, const Target& target);

 private:
  AveragePeriodPool(const Problem& problem, const PoolPlan& plan, const Target& target);
  void run(const RunArgs& args, const AveragePeriodKernel& kernel, int64_t plane, int64_t period,
           std::byte* kept) const override;

  std::vector<float> row_weights_, column_weights_;  // of rows and columns of windows
};

}  // namespace partita::jit
