// SPDX-License-Identifier: Apache-2.0
// Gradients from indices where channels are neighbours in memory: each cell adds up what names it.
#pragma once

#include <memory>

#include "kernels/jit/pool/indices/gather.hpp"
#include "kernels/jit/pool/indices/reach.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// Row by row of cells, each written once, nothing in scratch memory but a table.
class ChannelGather {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  ChannelGather(const Problem& problem, const Target& target);
  size_t scratch_bytes() const { return static_cast<size_t>(g_.src[2]) * 8; }
  /// True where every index named a cell within `reach`; else the results are not those of the problem. `stores` false:
  /// nothing is stored.
  bool operator()(const RunArgs& args, const IndexReach& reach, bool stores) const;
  bool takes(const IndexReach& reach) const { return reach.most() <= kMostWindows; }

 private:
  static constexpr int64_t kMostWindows = 32;  ///< over a cell
  static constexpr size_t kMaxOperands = 12;

  GatherShape shape(const Problem& problem, Isa isa) const;
  int64_t row(const RunArgs& args, const GatherKernel& kernel, const IndexReach& reach, int64_t n, int64_t row) const;

  PoolGeometry g_;
  PoolIndex base_;
  GatherShape shape_;
  std::vector<std::byte> steps_;
  int threads_;
  std::unique_ptr<const GatherKernel> kernel_, streaming_, counts_;
};

}  // namespace partita::jit
