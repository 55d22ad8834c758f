// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings, channel-first, whose windows may overlap, leave cells out or hang over the border.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "kernels/jit/pool/backward/plane_period_kernel.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// One plane after the other.
class PlanePeriodPool {
 public:
  /// `assumed`: of gradients from indices.
  static bool fits(const Problem& problem, const Target& target, const AssumedWindows& assumed = {});
  /// Throws Xbyak::Error where there is no memory for code.
  PlanePeriodPool(const Problem& problem, const Target& target, const AssumedWindows& assumed = {});
  PlanePeriodPool(const PlanePeriodPool&) = delete;
  PlanePeriodPool& operator=(const PlanePeriodPool&) = delete;
  size_t scratch_bytes() const { return std::max(kept_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const {
    run_all(args, nullptr);
    return {};
  }
  /// Gradients from indices, with the results written in any case: true where every index named a cell of its window.
  bool from_indices(const RunArgs& args) const;
  const PoolPlan& plan() const { return p_; }

 private:
  static constexpr size_t kMostLanes = 16;
  void run_all(const RunArgs& args, std::atomic<int64_t>* found) const;
  void run(const RunArgs& args, const PlanePeriodKernel& kernel, int64_t plane, std::byte* kept, int32_t* counts) const;

  PoolPlan p_;
  int threads_;
  int64_t margin_, row_bytes_;  // of a row of windows: bytes before the first one, and all
  int64_t shared_rows_;
  ThreadScratch kept_;
  PoolFolds folds_;
  std::unique_ptr<const PlanePeriodKernel> kernel_, streaming_;
};

}  // namespace partita::jit
