// SPDX-License-Identifier: Apache-2.0
// AveragePlan: a PoolPlan of an average whose windows may also be adaptive.
#pragma once

#include "kernels/jit/pool/plan.hpp"

namespace partita::jit {

/// Adaptive windows share an axis out: window o of O covers cells [floor(o * I / O), ceil((o + 1) * I / O)) of I. They
/// have no stride and no padding: those of PoolGeometry are 1 and 0 then.
struct AveragePlan : PoolPlan {
  explicit AveragePlan(const Problem& problem);

  bool adaptive;

  /// Windows along an axis that may lie over one cell.
  int64_t reach(int i) const {
    if (!adaptive) return PoolPlan::reach(i);
    return (g.dst[i] - 1) / g.src[i] + (g.src[i] % g.dst[i] == 0 ? 1 : 2);
  }
  /// All windows over a cell of an axis, in order.
  std::vector<Cover> covers(int i, int64_t cell) const;
  std::vector<RowCover> row_covers(int64_t z, int64_t y) const;
  /// Adaptive windows: window_at is 0, and windows are those over the block's cells.
  std::vector<ColumnBlock> column_blocks(int64_t cells) const;
  /// What the sum of each column of windows is multiplied by; one number where all columns weigh the same.
  std::vector<float> column_weights() const;
  /// What window (y, x) of a plane multiplies by.
  float weight_at(int64_t y, int64_t x) const;

 private:
  struct Cells {
    int64_t begin, end;
  };
  Cells cells(int i, int64_t window) const {
    return {window * g.src[i] / g.dst[i], ((window + 1) * g.src[i] + g.dst[i] - 1) / g.dst[i]};
  }
  float weight_of(int i, int64_t window) const;
};

}  // namespace partita::jit
