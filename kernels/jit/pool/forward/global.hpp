// SPDX-License-Identifier: Apache-2.0
// Generated global poolings, channel-first: one window over all cells of a plane.
#pragma once

#include <array>
#include <memory>

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/view.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// A block of planes is folded into a number each in scratch memory; then the back expression runs over these numbers.
class GlobalPool {
 public:
  /// False where the planes' cells or the results do not lie next to each other.
  static bool fits(const ForwardPool& pool);

  /// Throws Xbyak::Error where there is no memory for code.
  GlobalPool(const Problem& problem, const Target& target);

  size_t scratch_bytes() const { return folded_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  using Kernel = std::shared_ptr<const FlatKernel>;
  Kernel make_fold(Isa isa) const;
  Kernel make_back(Isa isa, int64_t planes) const;
  void run(const RunArgs& args, float* folded, int64_t n, int64_t plane, int64_t planes) const;

  ForwardPool p_;
  int threads_;
  ThreadScratch folded_;
  int64_t block_;  ///< planes of a block
  Kernel fold_, back_, last_back_;
};

}  // namespace partita::jit
