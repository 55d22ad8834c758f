// SPDX-License-Identifier: Apache-2.0
// A resampling as planes with taps, in both directions.
#pragma once

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/resample/axes.hpp"
#include "kernels/jit/taps/planes.hpp"
#include "kernels/problem.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {

PlaneWalk resample_walk(const Problem& p, bool channel_last);
/// The same; channel-first, where a row of results would not fill a vector and a vector over several rows can be picked
/// from a few vectors of sources, with axes joined.
PlaneWalk joined_plane_walk(const Problem& p, bool channel_last, Isa isa);

/// Calls run(plane, z, y) for each row of results, channel-last, on all threads; `streaming`: that stores past the
/// caches.
template <class F>
void each_result_row(const PlaneWalk& walk, bool streaming, F run) {
  const int64_t to_z = walk.z.to(), to_y = walk.y.to();
  parallel_for(walk.outer * to_z * to_y, walk.x.to() * walk.channels, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) run(row / to_y / to_z, row / to_y % to_z, row % to_y);
    if (streaming) end_streaming();
  });
}

/// Null where generated code can walk every operand in one of the layouts, then `channel_last` says which.
const char* refuse_resample_walk(const Problem& p, bool& channel_last);

}  // namespace partita::jit
