// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings, channel-last, whose windows may overlap, leave cells out or hang over the border.
#pragma once

#include <algorithm>

#include "kernels/jit/pool/backward/period_kernel.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// One row of periods after the other. The windows found in a row are kept while rows below them need them; a part that
/// starts inside a plane searches those above it once more.
class PeriodPool {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  PeriodPool(const Problem& problem, const Target& target);
  PeriodPool(const PeriodPool&) = delete;
  PeriodPool& operator=(const PeriodPool&) = delete;
  size_t scratch_bytes() const { return std::max(kept_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const;

 private:
  int64_t reach() const { return p_.reach(1); }
  void run(const RunArgs& args, const PeriodKernel& kernel, int64_t plane, int64_t period, std::byte* kept) const;

  PoolPlan p_;
  int threads_;
  int64_t row_bytes_;  // of a row of windows
  ThreadScratch kept_;
  PoolFolds folds_;
  PeriodRows<PeriodKernel> rows_;
};

}  // namespace partita::jit
