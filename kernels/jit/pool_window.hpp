// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings whose windows cover every cell exactly once: a window is read, and its cells are written, in
// one step.
#pragma once

#include <memory>

#include "kernels/jit/pool_window_kernel.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class WindowPool {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  WindowPool(const Problem& problem, const Target& target);
  WindowPool(const WindowPool&) = delete;
  WindowPool& operator=(const WindowPool&) = delete;
  Status operator()(const RunArgs& args) const;

 private:
  /// A row of windows, or `rows` of them, below each other: of the n-th example and, channel-first, the c-th channel.
  struct Place {
    int64_t n, c, z, y, rows;
  };
  void run(const RunArgs& args, const WindowKernel& kernel, const Place& at) const;

  PoolPlan p_;
  std::unique_ptr<const WindowKernel> kernel_, streaming_;
};

}  // namespace partita::jit
