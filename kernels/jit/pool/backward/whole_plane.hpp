// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima over whole planes with nothing computed beside them.
#pragma once

#include <memory>

#include "kernels/jit/pool/backward/whole_plane_kernel.hpp"
#include "kernels/jit/pool/plan.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

class WholePlanePool {
 public:
  /// Of a gradient of maxima, each over a whole plane.
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  WholePlanePool(const Problem& problem, const Target& target);
  Status operator()(const RunArgs& args) const;
  size_t scratch_bytes() const { return scratch_.bytes(); }

 private:
  void run_rows(const RunArgs& args) const;
  void run_columns(const RunArgs& args) const;

  PoolPlan p_;
  int threads_;
  ThreadScratch scratch_;
  std::shared_ptr<const PlaneRowsKernel> rows_, streamed_rows_;
  /// Of whole groups of channels, and of what is left; without and with streaming.
  std::shared_ptr<const PlaneColumnsKernel> columns_[2], last_columns_[2];
};

}  // namespace partita::jit
