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

/// How an axis of a step or of a value is cut: along which tile axis (-1: not), and how many of its elements one index
/// of the tile axis is.
struct TileCut {
  int axis = -1;
  int64_t times = 1;

  /// Elements of a tile with such extents, of `whole` in all.
  int64_t of(int64_t whole, const std::vector<int64_t>& extents) const {
    return axis < 0 ? whole : extents[static_cast<size_t>(axis)] * times;
  }
};

/// What a region stands around.
enum class Around : uint8_t {
  products,  ///< the largest temporary between two matrix products
  sums,      ///< sums that loops make of tensors which loops behind them read again (batch normalisation)
  weights,   ///< a matrix that loops make for one product (dequantized weights)
};

struct Region {
  Around around = Around::products;
  std::vector<size_t> steps;                ///< in order
  std::vector<Walk> walks;                  ///< of each of them
  std::vector<TileAxis> axes;               ///< outermost first
  std::vector<std::vector<TileCut>> tiled;  ///< of each step, for each axis of its space
  /// Buffers that only the region touches: a tile has its own piece.
  struct Local {
    int buffer;
    std::vector<TileCut> tiled;  ///< for each axis
  };
  std::vector<Local> local;

  const Local* local_of(int buffer) const;
  /// Whether step `i` is a product that sums along the last tile axis: each tile gives it a summand, so that tiles
  /// along that axis follow each other in one thread. Nobody else in the region reads its result.
  bool accumulates(const Program& program, size_t i) const;
  bool accumulates(const Program& program) const;
};

/// A region with the extents of its tiles.
struct CutRegion {
  Region region;
  std::vector<int64_t> extents;
};

/// Nothing where there is none. `sums`: whether products may sum along the last tile axis.
std::optional<Region> find_region(const Program& program, Around around, bool sums = true);

/// Where an axis of a view lies in a tensor: as all of an axis, or as part of it, in steps of `times` elements.
struct Within {
  int axis;
  int64_t times;
};
/// Nothing where it repeats, has size 1, or lies across axes.
std::optional<Within> axis_around(int64_t extent, int64_t stride, const Dims& dims, const Dims& strides);

/// Which axis of `buffer` each axis of a view of it moves along; -1 where it repeats or has size 1. Nothing where the
/// view is no permutation of whole axes.
std::optional<std::vector<int>> axes_of_view(const TensorDesc& view, const logical_tensor& buffer);

}  // namespace partita
