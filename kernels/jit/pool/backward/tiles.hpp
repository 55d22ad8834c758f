// SPDX-License-Identifier: Apache-2.0
// Rows of a tile: what a block of rows of cells needs of the windows and of the source, and where scratch memory holds
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/jit/pool/plan.hpp"

namespace partita::jit {

/// `count` rows of a plane from (z, y) on; they are prepared in slots from `slot` on.
struct PoolRows {
  int64_t z, y, count, slot;
};

/// `count` sums in slots from `slot` on: of `covers`, then of the rows one further along y, ..
struct PoolSums {
  std::vector<RowCover> covers;
  int64_t count, slot;
};

/// Rows of cells [first, first + count) of a plane.
struct PoolRowBlock {
  int64_t first = 0, count = 0;
  std::vector<PoolSums> sums;             ///< average
  std::vector<PoolRows> windows, source;  ///< maximum
  std::vector<PoolRows> cells;            ///< slot: row of the block
  /// For each row of cells: average: the slot of its sum; maximum: {rows of windows over it, then of each its slot and
  /// 4 * its first tap}.
  std::vector<int32_t> spread;
  /// Maximum, for each row of windows: the slots of the source rows it reads (-1: outside), then its first valid tap.
  std::vector<int32_t> winners;
  int64_t window_slots = 0, source_slots = 0;
};

/// Blocks of `together` rows of cells, the last one with what is left. `join_sums`: sums that follow each other along y
/// are put together.
std::vector<PoolRowBlock> pool_row_blocks(const PoolPlan& plan, int64_t together, bool join_sums);

}  // namespace partita::jit
