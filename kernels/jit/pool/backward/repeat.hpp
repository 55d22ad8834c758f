// SPDX-License-Identifier: Apache-2.0
// RepeatPool: gradients of averages, channels first, whose windows cover every cell exactly once and behind which
// nothing is computed: each cell repeats its window's gradient. Also nearest neighbours of whole factors.
#pragma once

#include <memory>

#include "kernels/jit/pool/backward/repeat_kernel.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class RepeatPool {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  RepeatPool(const Problem& problem, const Target& target);
  RepeatPool(const RepeatPool&) = delete;
  RepeatPool& operator=(const RepeatPool&) = delete;
  Status operator()(const RunArgs& args) const;

 private:
  void run(const RunArgs& args, const RepeatKernel& kernel, int64_t windows, int64_t units) const;

  PoolPlan p_;
  int threads_;
  int64_t windows_ = 0, units_ = 0;  ///< of a unit; whole units
  std::unique_ptr<const RepeatKernel> plain_, streaming_, rest_;
};

}  // namespace partita::jit
