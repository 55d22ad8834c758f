// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings, channel-first, whose windows may overlap, leave cells out or hang over the border.
#pragma once

#include <memory>

#include "kernels/jit/pool_plane_period_kernel.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// One plane after the other.
class PlanePeriodPool {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  PlanePeriodPool(const Problem& problem, const Target& target);
  PlanePeriodPool(const PlanePeriodPool&) = delete;
  PlanePeriodPool& operator=(const PlanePeriodPool&) = delete;
  size_t scratch_bytes() const { return static_cast<size_t>(threads_ * p_.reach(1) * row_bytes_); }
  Status operator()(const RunArgs& args) const;

 private:
  void run(const RunArgs& args, const PlanePeriodKernel& kernel, int64_t plane, std::byte* kept) const;

  PoolPlan p_;
  int threads_;
  int64_t margin_, row_bytes_;  // of a row of windows: bytes before the first one, and all
  std::unique_ptr<const PlanePeriodKernel> kernel_, streaming_;
};

}  // namespace partita::jit
