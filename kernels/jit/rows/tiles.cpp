// SPDX-License-Identifier: Apache-2.0
// Tiles, and the numbers they keep for each result.
#include <algorithm>
#include <array>

#include "kernels/jit/rows/rows.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

int64_t row_tiles(const RowPlan& plan) { return (plan.space.rows + plan.tiling.tile_rows - 1) / plan.tiling.tile_rows; }
int64_t lane_tiles(const RowPlan& plan) {
  return plan.space.along_lanes ? 1 : (plan.space.lanes + plan.tiling.block - 1) / plan.tiling.block;
}
}  // namespace

int64_t tile_count(const RowPlan& plan) { return elements(plan.space.outer) * row_tiles(plan) * lane_tiles(plan); }

Tile tile_at(const RowPlan& plan, const RunArgs& args, std::byte* scratch, int64_t index) {
  const int64_t each = row_tiles(plan) * lane_tiles(plan), inside = index % each;
  Tile tile{.args = args, .scratch = scratch, .outer = coordinates(index / each, plan.space.outer)};
  tile.row = inside / lane_tiles(plan) * plan.tiling.tile_rows;
  tile.rows = std::min(plan.tiling.tile_rows, plan.space.rows - tile.row);
  tile.lane = inside % lane_tiles(plan) * plan.tiling.block;
  return tile;
}

int64_t tile_cost(const RowPlan& plan) {
  constexpr int64_t kOperationsAnElement = 3;  // all sweeps together
  return plan.tiling.tile_rows * std::min(plan.space.lanes, plan.tiling.block * plan.tiling.blocks) *
         kOperationsAnElement;
}

ThreadScratch tiles_scratch(const RowPlan& plan, size_t part_bytes) {
  return {std::min<int64_t>(plan.threads, tile_count(plan)), static_cast<int64_t>(part_bytes)};
}

int64_t results_of(const RowPlan& plan, const Tile& tile) {
  return plan.space.along_lanes ? tile.rows : std::min(plan.tiling.block, plan.space.lanes - tile.lane);
}

void fill_results(const RowPlan& plan, const Tile& tile, const RowView& view, float value) {
  const int64_t blocks = view.block != 0 ? plan.tiling.blocks : 1;
  for (int64_t b = 0; b < blocks; ++b) std::fill_n(tile.floats(view, b), plan.results(), value);
}

void fold_blocks(const RowPlan& plan, const Tile& tile, const RowView& view, Fold how) {
  if (plan.tiling.blocks == 1) return;
  for (int64_t i = 0; i < results_of(plan, tile); ++i) {
    double value = tile.floats(view)[i];
    for (int64_t b = 1; b < plan.tiling.blocks; ++b) value = folded(how, value, tile.floats(view, b)[i]);
    tile.floats(view)[i] = static_cast<float>(value);
  }
}

void write_results(const RowPlan& plan, const Tile& tile, const RowView& numbers, const RowView& tensor) {
  std::byte* to = tile.address(tensor, 0);
  const int64_t step = plan.space.along_lanes ? tensor.row : tensor.lane;
  for (int64_t i = 0; i < results_of(plan, tile); ++i) {
    const float value = tile.floats(numbers)[i];
    if (tensor.dtype == Dtype::f32)
      *reinterpret_cast<float*>(to + i * step) = value;
    else
      store_from_double(to + i * step, tensor.dtype, 0, value);
  }
}

void read_results(const RowPlan& plan, const Tile& tile, const RowView& tensor, const RowView& numbers) {
  const std::byte* from = tile.address(tensor, 0);
  const int64_t step = plan.space.along_lanes ? tensor.row : tensor.lane;
  for (int64_t i = 0; i < results_of(plan, tile); ++i) {
    tile.floats(numbers)[i] = tensor.dtype == Dtype::f32
                                  ? *reinterpret_cast<const float*>(from + i * step)
                                  : static_cast<float>(load_as_double(from + i * step, tensor.dtype, 0));
  }
}

}  // namespace partita::jit
