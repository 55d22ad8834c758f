// SPDX-License-Identifier: Apache-2.0
// Channel-last linear interpolation, its gradient and that of nearest neighbours: each source place is read once for a
// row of results.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/jit/resample/linear_kernel.hpp"
#include "kernels/jit/resample/walk.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class ResampleLinear {
 public:
  /// Whether the problem is of that kind; it must not be refused.
  static bool fits(const Problem& p, Isa isa);

  ResampleLinear(const Problem& p, const Target& target);
  Status operator()(const RunArgs& args) const;

 private:
  using Kernel = std::shared_ptr<const LinearKernel>;
  /// Of a number of rows: for all groups of channels but the last, and for that.
  struct Kernels {
    Kernel whole, last;
  };

  void make_kernels(const Problem& p);
  void run_row(const RunArgs& args, int64_t plane, int64_t z, int64_t y, bool streaming) const;

  PlaneWalk walk_;
  int source_port_;
  std::vector<int> back_in_;
  WalkedTensor source_;
  std::vector<WalkedTensor> back_tensors_, out_;
  std::vector<LinearPlace> places_;  ///< of the interpolation
  bool may_stream_ = false;
  std::array<std::array<Kernels, LinearKernel::kMostRows + 1>, 2> kernels_;  // [streaming][rows]
};

}  // namespace partita::jit
