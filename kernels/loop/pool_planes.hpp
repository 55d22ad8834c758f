// SPDX-License-Identifier: Apache-2.0
// The pooling skeletons of the interpreter on dense planes [spatial][lanes] of f32 values; lanes are channels.
#pragma once

#include "kernels/pool_geometry.hpp"

namespace partita {

inline constexpr int64_t kMaxLanes = 16;  ///< of a plane

/// dst[o] = maximum or average of src over window o; `empty` is stored for a maximum over no valid cell.
void pool_forward_plane(const PoolGeometry& g, int64_t lanes, const float* src, float* dst, float empty);
/// diff_src = the sum over windows of diff_dst / divisor. diff_src is overwritten.
void average_backward_plane(const PoolGeometry& g, int64_t lanes, const float* diff_dst, float* diff_src);
/// Each diff_dst goes to the first maximum of its window of src (NaN counts as maximum). diff_src is overwritten.
void max_backward_plane(const PoolGeometry& g, int64_t lanes, const float* src, const float* diff_dst, float* diff_src);

}  // namespace partita
