// SPDX-License-Identifier: Apache-2.0
// Rows of windows and of source cells under blocks of rows of cells.
#include "kernels/jit/pool/backward/tiles.hpp"

#include <algorithm>
#include <iterator>

namespace partita::jit {
namespace {

using Covers = std::vector<std::vector<RowCover>>;  // of each row of cells

/// True where `next` is `now` with every row of windows one further.
bool follows(const std::vector<RowCover>& now, const std::vector<RowCover>& next) {
  return std::ranges::equal(now, next, [](RowCover a, const RowCover& b) {
    ++a.y;
    return a == b;
  });
}

/// One sum for neighbouring rows with the same covers. Sums that follow each other are one call.
void add_sums(const PoolPlan& p, PoolRowBlock& block, bool join_sums, const Covers& covers) {
  std::vector<size_t> distinct, number;  // first rows of the sums; of each row its sum
  for (size_t row = 0; row < covers.size(); ++row) {
    if (row == 0 || covers[row] != covers[row - 1]) distinct.push_back(row);
    number.push_back(distinct.size() - 1);
  }
  std::vector<int64_t> slot(distinct.size(), -1);
  const auto ahead = static_cast<size_t>(p.g.strides[1]) + 1;
  for (size_t k = 0; k < distinct.size(); ++k) {
    if (slot[k] >= 0) continue;
    block.sums.push_back({covers[distinct[k]], 1, block.window_slots});
    slot[k] = block.window_slots++;
    for (size_t last = k, next = k + 1; join_sums && next < std::min(distinct.size(), last + ahead); ++next) {
      if (slot[next] >= 0 || !follows(covers[distinct[last]], covers[distinct[next]])) continue;
      slot[next] = block.window_slots++;
      ++block.sums.back().count;
      last = next;
    }
  }
  for (size_t row = 0; row < covers.size(); ++row) block.spread.push_back(static_cast<int32_t>(slot[number[row]]));
}

/// The rows of windows over the cells, and the rows of cells that these read.
void add_windows(const PoolPlan& p, PoolRowBlock& block, const Covers& covers) {
  const auto sorted = [](std::vector<int64_t>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  const auto runs = [](const std::vector<int64_t>& list, int64_t in_a_plane) {
    std::vector<PoolRows> rows;
    for (size_t k = 0; k < list.size(); ++k)
      if (k > 0 && list[k] == list[k - 1] + 1 && list[k] % in_a_plane != 0)
        ++rows.back().count;
      else
        rows.push_back({list[k] / in_a_plane, list[k] % in_a_plane, 1, static_cast<int64_t>(k)});
    return rows;
  };
  const auto slot_of = [](const std::vector<int64_t>& list, int64_t row) {
    return static_cast<int32_t>(std::ranges::lower_bound(list, row) - list.begin());
  };
  std::vector<int64_t> windows, source;
  for (const auto& row : covers)
    for (const RowCover& c : row) windows.push_back(c.z * p.g.dst[1] + c.y);
  sorted(windows);
  std::vector<std::vector<int64_t>> reads;
  for (int64_t row : windows) {
    reads.push_back(p.tap_rows_of(row / p.g.dst[1], row % p.g.dst[1]));
    std::ranges::copy_if(reads.back(), std::back_inserter(source), [](int64_t read) { return read >= 0; });
  }
  sorted(source);
  block.windows = runs(windows, p.g.dst[1]);
  block.source = runs(source, p.g.src[1]);
  block.window_slots = static_cast<int64_t>(windows.size());
  block.source_slots = static_cast<int64_t>(source.size());
  for (size_t k = 0; k < windows.size(); ++k) {
    for (int64_t read : reads[k]) block.winners.push_back(read < 0 ? -1 : slot_of(source, read));
    block.winners.push_back(p.first_tap_of(windows[k] / p.g.dst[1], windows[k] % p.g.dst[1]));
  }
  for (const auto& row : covers) {
    block.spread.push_back(static_cast<int32_t>(row.size()));
    for (const RowCover& c : row) {
      block.spread.push_back(slot_of(windows, c.z * p.g.dst[1] + c.y));
      block.spread.push_back(c.tap * 4);
    }
  }
}

}  // namespace

std::vector<PoolRowBlock> pool_row_blocks(const PoolPlan& p, int64_t together, bool join_sums) {
  std::vector<PoolRowBlock> blocks;
  for (int64_t first = 0; first < p.rows(); first += together) {
    PoolRowBlock& block = blocks.emplace_back();
    block.first = first;
    block.count = std::min(together, p.rows() - first);
    Covers covers;
    for (int64_t row = first; row < first + block.count; ++row) {
      const int64_t z = row / p.g.src[1], y = row % p.g.src[1];
      covers.push_back(p.row_covers(z, y));
      if (!block.cells.empty() && block.cells.back().z == z)
        ++block.cells.back().count;
      else
        block.cells.push_back({z, y, 1, row - first});
    }
    p.maximum ? add_windows(p, block, covers) : add_sums(p, block, join_sums, covers);
  }
  return blocks;
}

}  // namespace partita::jit
