// SPDX-License-Identifier: Apache-2.0
// Region: steps that can run tile by tile, and the axes along which tiles are cut.
#pragma once

#include <optional>
#include <vector>

#include "passes/program.hpp"
#include "passes/tile/walk.hpp"

namespace partita {

/// One axis that all products and softmaxes of a region have, under whatever number.
struct TileAxis {
  int64_t extent = 1;
};

/// What a region stands around.
enum class Around : uint8_t {
  products,  ///< the largest temporary between two matrix products
  sums,      ///< sums that loops make of tensors which loops behind them read again (batch normalisation)
};

struct Region {
  Around around = Around::products;
  std::vector<size_t> steps;   ///< in order
  std::vector<Walk> walks;     ///< of each of them
  std::vector<TileAxis> axes;  ///< outermost first
  /// Of each step, for each axis of its space: the number of the tile axis, or -1.
  std::vector<std::vector<int>> tiled;
  /// Buffers that only the region touches: a tile has its own piece. For each of their axes the tile axis, or -1.
  struct Local {
    int buffer;
    std::vector<int> tiled;
  };
  std::vector<Local> local;

  const Local* local_of(int buffer) const;
  /// Whether step `i` is a product that sums along the last tile axis: each tile gives it a summand, so that tiles
  /// along that axis follow each other in one thread. Nobody else in the region reads its result.
  bool accumulates(const Program& program, size_t i) const;
  bool accumulates(const Program& program) const;
};

/// Nothing where there is none. `sums`: whether products may sum along the last tile axis.
std::optional<Region> find_region(const Program& program, Around around, bool sums = true);

/// Which axis of `buffer` each axis of a view of it moves along; -1 where it repeats or has size 1. Nothing where the
/// view is no permutation of whole axes.
std::optional<std::vector<int>> axes_of_view(const TensorDesc& view, const logical_tensor& buffer);

}  // namespace partita
