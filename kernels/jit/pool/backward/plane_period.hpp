// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings, channel-first, whose windows may overlap, leave cells out or hang over the border.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/pool/backward/plane_period_kernel.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/jit/pool/staged_planes.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// One plane after the other, or some of them side by side.
class PlanePeriodPool {
 public:
  /// `assumed`: of gradients from indices.
  static bool fits(const Problem& problem, const Target& target, const AssumedWindows& assumed = {});
  /// Throws Xbyak::Error where there is no memory for code.
  PlanePeriodPool(const Problem& problem, const Target& target, const AssumedWindows& assumed = {});
  PlanePeriodPool(const PlanePeriodPool&) = delete;
  PlanePeriodPool& operator=(const PlanePeriodPool&) = delete;
  size_t scratch_bytes() const { return std::max(kept_.bytes() + staged_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const {
    run_all(args, nullptr);
    return {};
  }
  /// Whether rows of few windows are best walked so, several planes at a time.
  static bool fits_side_by_side(const Problem& problem, const Target& target);
  /// Gradients from indices, with the results written in any case: true where every index named a cell of its window.
  bool from_indices(const RunArgs& args) const;
  const PoolPlan& plan() const { return p_; }

 private:
  static constexpr size_t kMostLanes = 16;
  /// What a thread works with.
  struct Work {
    std::byte* kept;  ///< rows of windows
    std::array<int32_t, kMostLanes> counts{};
    StagedPlanes::Part staged;
  };
  void run_all(const RunArgs& args, std::atomic<int64_t>* found) const;
  void run(const RunArgs& args, const PlanePeriodKernel& kernel, int64_t plane, Work& work) const;
  static int side_by_side(const PoolPlan& plan, const Problem& problem, const Target& target);
  static bool is_possible(const PoolPlan& plan, const Problem& problem, Isa isa);
  Work work(const RunArgs& args, int number) const;
  const std::byte* plane_of(const PoolOperand& o, const std::optional<int64_t>& apart, const void* base,
                            int64_t plane) const;

  PoolPlan p_;
  int threads_;
  int64_t margin_, row_bytes_;  // of a row of windows: bytes before the first one, and all
  int64_t shared_rows_, shared_row_bytes_;
  ThreadScratch kept_;
  bool is_staged_ = false;  // results are put together in scratch memory, from where whole lines leave
  StagedPlanes staged_;     // behind kept_
  PoolFolds folds_;
  std::vector<std::optional<int64_t>> in_apart_, out_apart_;  // bytes from plane to plane, where that is one number
  int side_by_side_;                                          // planes
  std::unique_ptr<const PlanePeriodKernel> kernel_, streaming_;
  std::unique_ptr<const PlanePeriodKernel> single_;  // of planes that are left
};

}  // namespace partita::jit
