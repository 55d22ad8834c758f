// SPDX-License-Identifier: Apache-2.0
// Operands of a pooling seen the same way in both data formats, and the pooling as generated code takes it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/pool_geometry.hpp"

namespace partita::jit {

/// A tensor with three spatial axes: byte distances along n, c, z, y, x; 0 where it has no such axis or repeats.
struct PoolView {
  Dtype dtype = Dtype::undef;
  int64_t offset = 0, n = 0, c = 0, z = 0, y = 0, x = 0;

  const std::byte* at(const void* base, int64_t in, int64_t ic, int64_t iz, int64_t iy, int64_t ix) const {
    return static_cast<const std::byte*>(base) + offset + in * n + ic * c + iz * z + iy * y + ix * x;
  }
  int64_t element_bytes() const;
};

PoolView pool_view(const TensorDesc& desc, bool channel_last);

/// A forward pooling: three spatial axes, never empty expressions, views of all operands (those of `front` and in[0]
/// lie over the source, the others and the outputs over the result).
struct ForwardPool {
  PoolGeometry g;
  Expr front, back;
  std::vector<int> front_in, back_in;  ///< operands that they load
  std::vector<PoolView> in, out;
  float lowest = 0;      ///< what a window without cells gives
  bool divides = false;  ///< averages divide, so that integers round as they should; else they multiply
};
ForwardPool forward_pool(const Problem& problem);

/// The results exceed their share of the last-level cache, and every row of them starts where a streaming store may.
bool may_stream(const ForwardPool& pool, const Problem& problem);

/// How the elements of a row of `extent` elements follow each other: next to each other, or one for all of them. Absent
/// where neither. A `distance` does not matter where there is one element.
enum class RowWalk : uint8_t { next, same };
std::optional<RowWalk> row_walk(const PoolView& view, int64_t extent, int64_t distance);
/// The same for cells that have `channels` channels next to each other.
std::optional<RowWalk> joined_walk(const PoolView& view, int64_t cells, int64_t channels);
/// Distance from cell to cell where the cells of all three axes follow each other evenly.
std::optional<int64_t> even_distance(const PoolView& view, const Dims& extents);

}  // namespace partita::jit
