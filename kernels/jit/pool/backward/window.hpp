// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings whose windows cover every cell exactly once: a window is read, and its cells are written, in
// one step.
#pragma once

#include <atomic>
#include <functional>

#include "kernels/jit/pool/backward/window_kernel.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class WindowPool {
 public:
  /// Gradients from indices: whether they fit if the windows are those of the plan.
  static bool fits(const Problem& problem, const Target& target);
  /// Whether it does, and chooses from elements of 16 bits as they are.
  static bool fits_halves(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  WindowPool(const Problem& problem, const Target& target);
  WindowPool(const WindowPool&) = delete;
  WindowPool& operator=(const WindowPool&) = delete;
  Status operator()(const RunArgs& args) const {
    run_all(args, nullptr);
    return {};
  }
  /// Gradients from indices, with the results written in any case: true where every index named a cell of its window.
  bool from_indices(const RunArgs& args) const;
  const PoolPlan& plan() const { return p_; }
  size_t scratch_bytes() const { return folds_.scratch_bytes(); }

 private:
  /// A row of windows, or `rows` of them, below each other: of the n-th example and, channel-first, the c-th channel.
  struct Place {
    int64_t n, c, z, y, rows;
  };
  static constexpr size_t kMostLanes = 16;
  void run_all(const RunArgs& args, std::atomic<int64_t>* found) const;
  void run(const RunArgs& args, bool streaming, const Place& at, int32_t* counts) const;

  int64_t planes() const { return p_.channel_last ? 1 : p_.g.channels; }  ///< of an example

  PoolPlan p_;
  int threads_;
  PoolFolds folds_;
  std::function<void(const WindowCall&)> kernel_, streaming_;
  bool joined_ = false;                       // how streaming_ stores
  int64_t rows_together_ = 1;                 // of windows, in a step along x
  int64_t element_bytes_ = 0, together_ = 0;  // where rows are joined: of all results; elements at once
};

}  // namespace partita::jit
