// SPDX-License-Identifier: Apache-2.0
// Gradients of average poolings, channel-last, whose windows lie apart and overlap by less than half.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/jit/pool/backward/average_period_kernel.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// One row of periods after the other; a part that starts inside a plane reads the windows above it once more.
class AveragePeriodPool {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  AveragePeriodPool(const Problem& problem, const Target& target);
  AveragePeriodPool(const AveragePeriodPool&) = delete;
  AveragePeriodPool& operator=(const AveragePeriodPool&) = delete;
  size_t scratch_bytes() const { return std::max(sums_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const;

 private:
  void run(const RunArgs& args, const AveragePeriodKernel& kernel, int64_t plane, int64_t period,
           std::byte* sums) const;

  PoolPlan p_;
  int threads_;
  std::vector<float> row_weights_, column_weights_;  // of rows and columns of windows
  int64_t row_bytes_;                                // of a row of gradients; behind it lie sums of a column
  ThreadScratch sums_;
  PoolFolds folds_;
  PeriodRows<AveragePeriodKernel> rows_;
};

}  // namespace partita::jit
