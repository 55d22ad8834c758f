// SPDX-License-Identifier: Apache-2.0
// Adaptive windows and their weights.
#include "kernels/jit/pool/average/plan.hpp"

#include <algorithm>

namespace partita::jit {

AveragePlan::AveragePlan(const Problem& problem)
    : PoolPlan(problem), adaptive(problem.op == OpKind::AdaptiveAvgPoolBackward) {
  if (!adaptive) return;
  g.kernel = g.strides = g.dilations = {1, 1, 1};
  g.pads_begin = g.pads_end = {0, 0, 0};
  const auto even = [&](int i) { return g.src[i] % g.dst[i] == 0; };
  same_along_rows = even(0) && even(1);
  same_along_x = even(2);
  const int64_t rows = same_along_rows ? g.src[0] / g.dst[0] * (g.src[1] / g.dst[1]) : 1;
  weight = static_cast<float>(1.0 / static_cast<double>(rows * (same_along_x ? g.src[2] / g.dst[2] : 1)));
}

float AveragePlan::weight_of(int i, int64_t window) const {
  const Cells c = cells(i, window);
  return 1.0f / static_cast<float>(c.end - c.begin);
}

std::vector<Cover> AveragePlan::covers(int i, int64_t cell) const {
  if (!adaptive) return covers_of(g, i, cell);
  std::vector<Cover> list;
  for (int64_t o = cell * g.dst[i] / g.src[i]; o < g.dst[i] && cells(i, o).begin <= cell; ++o)
    list.push_back({o, cell - cells(i, o).begin});
  return list;
}

std::vector<RowCover> AveragePlan::row_covers(int64_t z, int64_t y) const {
  if (!adaptive) return PoolPlan::row_covers(z, y);
  std::vector<RowCover> list;
  const std::vector<Cover> over_y = covers(1, y);
  for (const Cover& cz : covers(0, z))
    for (const Cover& cy : over_y)
      list.push_back({cz.window, cy.window, 0, weight_of(0, cz.window) * weight_of(1, cy.window)});
  return list;
}

std::vector<ColumnBlock> AveragePlan::column_blocks(int64_t cells) const {
  if (!adaptive) return PoolPlan::column_blocks(cells);
  std::vector<ColumnBlock> list;
  for (int64_t cell = 0; cell < g.src[2]; cell += cells) {
    const int64_t count = std::min(cells, g.src[2] - cell), window = covers(2, cell).front().window;
    list.push_back({.cell = cell,
                    .cells = count,
                    .periods = count,
                    .window = window,
                    .windows = covers(2, cell + count - 1).back().window + 1 - window});
  }
  return list;
}

std::vector<float> AveragePlan::column_weights() const {
  if (!adaptive || same_along_x) return PoolPlan::column_weights();
  std::vector<float> list;
  for (int64_t o = 0; o < g.dst[2]; ++o) list.push_back(weight_of(2, o) * (same_along_rows ? weight : 1.0f));
  return list;
}

float AveragePlan::weight_at(int64_t y, int64_t x) const {
  if (!adaptive) return PoolGeometry::reciprocal(g.divisor({0, y, x}));
  const Cells rows = cells(1, y), columns = cells(2, x);
  return PoolGeometry::reciprocal(static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin)));
}

}  // namespace partita::jit
