// SPDX-License-Identifier: Apache-2.0
// Sizes of chunks and blocks.
#include "kernels/jit/resample/blocks.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLeastChunk = 2048, kMostChunk = 16384;  ///< floats of one prepared row
constexpr int64_t kPeriods = 8;                            ///< of a chunk, so that its stretches are long
constexpr int64_t kPreparedFloats = 16384;                 ///< of all prepared rows: they stay in a second-level cache
constexpr int64_t kPreparedRows = 8;  ///< also where they are long: blocks share rows with their neighbours
constexpr int64_t kChunkUnit = 32;    ///< results, so that chunks start at whole cache lines
constexpr int64_t kPiecesPerThread = 4;

/// Results of a chunk; `period` is how many results there are until sources lie alike again.
int64_t chunk_of(int64_t extent, int64_t channels, int64_t period) {
  const int64_t floats = std::clamp(kPeriods * period * channels, kLeastChunk, kMostChunk);
  const int64_t count = std::max<int64_t>(1, ceil_div(extent * channels, floats));
  return std::min(extent, ceil_div(ceil_div(extent, count), kChunkUnit) * kChunkUnit);
}

/// Sources from the first to behind the last that results [begin, end) need.
RowRun needed(const AxisMap& map, int64_t begin, int64_t end) {
  int64_t first = map.from(), last = -1;
  for (int64_t place = begin; place < end; ++place)
    for (const Tap& t : map.taps(place)) {
      first = std::min<int64_t>(first, t.source);
      last = std::max<int64_t>(last, t.source);
    }
  return last < 0 ? RowRun{0, 0} : RowRun{first, last - first + 1};
}

YBlock block_of(const PlaneWalk& walk, int64_t begin, int64_t end, const AxisStep& step,
                const std::vector<int32_t>& position) {
  YBlock block{.begin = begin, .end = end, .runs = {}, .stretches = {}};
  const RowRun range = needed(walk.y, begin, end);
  for (int64_t s = range.first; s < range.first + range.count; ++s) {
    if (position[static_cast<size_t>(s) + 1] == position[static_cast<size_t>(s)]) continue;
    if (!block.runs.empty() && block.runs.back().first + block.runs.back().count == s)
      ++block.runs.back().count;
    else
      block.runs.push_back({s, 1});
    ++block.rows;
  }
  block.stretches = tap_stretches(walk.y, begin, end, step, position);
  for (TapStretch& stretch : block.stretches)
    for (int64_t& p : stretch.positions) p -= position[static_cast<size_t>(range.first)];
  return block;
}

/// Result rows of a block.
int64_t block_rows(const PlaneWalk& walk, const ResampleBlocks& b, int64_t used_rows, int threads) {
  const int64_t rows = std::max(kPreparedRows, kPreparedFloats / (b.row_floats * b.z_slots));
  const int64_t results = std::max<int64_t>(1, rows * walk.y.to() / std::max<int64_t>(1, used_rows));
  const int64_t others = walk.outer * walk.inner * static_cast<int64_t>(b.chunks.size());
  const int64_t pieces = ceil_div(kPiecesPerThread * threads, std::max<int64_t>(1, others));
  return std::clamp<int64_t>(std::min(results, ceil_div(walk.y.to(), pieces)), 1, std::max<int64_t>(1, walk.y.to()));
}

}  // namespace

ResampleBlocks resample_blocks(const PlaneWalk& walk, const Attrs& attrs, int threads) {
  ResampleBlocks b;
  std::vector<int32_t> x_position(static_cast<size_t>(walk.x.from()));
  std::iota(x_position.begin(), x_position.end(), 0);
  b.chunk = chunk_of(walk.x.to(), walk.channels, regular_step(walk.x, attrs, x_position).step);
  for (int64_t begin = 0; begin < walk.x.to(); begin += b.chunk) {
    const int64_t end = std::min(walk.x.to(), begin + b.chunk);
    const RowRun from = needed(walk.x, begin, end);
    b.chunks.push_back({begin, end, from.first, from.first + from.count});
  }
  // Rows do not start at the same place of a page, where their stores and loads would be taken for each other.
  b.row_floats = ceil_div(b.chunk * walk.channels, 16) * 16 + 16;
  for (int64_t z = 0; z < walk.z.to(); ++z) b.z_slots = std::max(b.z_slots, needed(walk.z, z, z + 1).count);
  const std::vector<int32_t> position = used_before(walk.y);
  b.y_step = stretch_step(walk.y, attrs, position);
  const int64_t rows = block_rows(walk, b, position.back(), threads);
  for (int64_t begin = 0; begin < walk.y.to(); begin += rows) {
    b.blocks.push_back(block_of(walk, begin, std::min(walk.y.to(), begin + rows), b.y_step, position));
    b.rows = std::max(b.rows, b.blocks.back().rows);
  }
  return b;
}

}  // namespace partita::jit
