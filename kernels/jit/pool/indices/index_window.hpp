// SPDX-License-Identifier: Apache-2.0
// Maxima with indices where windows are read straight from the source.
#pragma once

#include <array>
#include <memory>

#include "kernels/jit/pool/indices/index_kernel.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// One row of windows after the other, or of some of a plane (IndexKernel).
class IndexWindowPool {
 public:
  static bool fits(const Problem& problem, const Target& target);
  /// Throws Xbyak::Error where there is no memory for code.
  IndexWindowPool(const Problem& problem, const Target& target);
  /// `large`: results go past the caches where they may, as large ones do.
  IndexWindowPool(const Problem& problem, const Target& target, bool large);
  Status operator()(const RunArgs& args) const;

 private:
  /// Of rows of windows with the same rows of taps.
  struct Kernels {
    std::vector<TapRow> rows;
    std::shared_ptr<const IndexKernel> plain, streaming;
  };
  struct Place {
    int64_t n, c, z, y, rows;
  };
  void run(const RunArgs& args, const Kernels& kernels, bool streaming, const Place& at) const;

  PoolPlan p_;
  PoolIndex base_;
  IndexStores stores_;
  int64_t element_bytes_ = 0, together_ = 0;  // where rows are joined: of a result; elements at once
  std::vector<Kernels> kernels_;
  std::vector<size_t> kernel_of_;  // each row of windows of a plane
};

}  // namespace partita::jit
