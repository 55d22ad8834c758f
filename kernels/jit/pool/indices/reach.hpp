// SPDX-License-Identifier: Apache-2.0
// Where the cells that indices name lie: a gradient from indices knows no windows, but what it is given has some.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/jit/pool/view.hpp"

namespace partita::jit {

/// Window o of axis i names cells [o * step[i] + low[i], o * step[i] + high[i]].
struct IndexReach {
  std::array<int64_t, 3> step{}, low{}, high{};

  struct Windows {
    int64_t first, count;
  };
  /// The windows of axis `i`, which has `windows` of them, that may name its cell `cell`.
  Windows over(int i, int64_t windows, int64_t cell) const;
  /// Windows over one cell along the axis, at the most.
  int64_t most(int i) const { return (high[i] - low[i]) / step[i] + 1; }
  int64_t most() const { return most(0) * most(1) * most(2); }
};

/// What some of the indices say, evenly taken; absent where one of these names no cell. Others may lie elsewhere, so
/// who relies on it counts what it finds.
std::optional<IndexReach> sampled_reach(const PoolGeometry& g, const PoolIndex& base, const PoolView& indices,
                                        const void* address);

}  // namespace partita::jit
