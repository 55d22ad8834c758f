// SPDX-License-Identifier: Apache-2.0
// How a resampling is cut into pieces of work: chunks of results along x, blocks of result rows along y.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/jit/resample/walk.hpp"

namespace partita::jit {

/// Results [begin, end) along x and the sources [from, from_end) they need.
struct XChunk {
  int64_t begin, end, from, from_end;
};

/// Neighbouring source rows.
struct RowRun {
  int64_t first, count;
};

/// Result rows [begin, end), the source rows they need (only those are prepared, one behind the other), and the
/// results' stretches over the prepared rows.
struct YBlock {
  int64_t begin, end, rows = 0;
  std::vector<RowRun> runs;
  std::vector<TapStretch> stretches;
};

struct ResampleBlocks {
  std::vector<XChunk> chunks;
  std::vector<YBlock> blocks;
  AxisStep y_step;
  int64_t chunk = 0;       ///< results of every chunk but the last
  int64_t rows = 0;        ///< most prepared rows of a block
  int64_t z_slots = 1;     ///< prepared blocks of source planes that are needed at once
  int64_t row_floats = 0;  ///< distance of prepared rows
};

/// Enough pieces for `threads` where the work allows; what a result is made of does not depend on it.
ResampleBlocks resample_blocks(const PlaneWalk& walk, const Attrs& attrs, int threads);

}  // namespace partita::jit
