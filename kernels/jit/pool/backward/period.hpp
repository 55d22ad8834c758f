// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings, channel-last, whose windows may overlap, leave cells out or hang over the border.
#pragma once

#include "kernels/jit/pool/backward/period_kernel.hpp"
#include "kernels/jit/pool/backward/period_walk.hpp"

namespace partita::jit {

/// What is kept of a row are its windows' winners and gradients.
class PeriodPool final : public PeriodWalk<PeriodKernel> {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  PeriodPool(const Problem& problem, const Target& target);

 private:
  PeriodPool(const Problem& problem, const PoolPlan& plan, const Target& target);
  void run(const RunArgs& args, const PeriodKernel& kernel, int64_t plane, int64_t period,
           std::byte* kept) const override;

  int64_t row_bytes_;  // of a row of windows
};

}  // namespace partita::jit
