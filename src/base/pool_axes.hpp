// SPDX-License-Identifier: Apache-2.0
// PoolAxes: which axes of a pooling's tensors are batch, channels and space.
#pragma once

#include "src/base/attrs.hpp"

namespace partita {

/// Where a pooling's tensors have their axes. Tensors may lack the batch axis: (C, H, W), (H, W, C).
struct PoolAxes {
  int spatial = 0;  ///< number of spatial axes
  bool batch = true, channel_last = false;

  int rank() const { return spatial + (batch ? 2 : 1); }
  int channel_axis() const { return channel_last ? rank() - 1 : batch ? 1 : 0; }
  /// Axis of the tensor that holds spatial axis `i`.
  int spatial_axis(int i) const { return (batch ? 1 : 0) + (channel_last ? 0 : 1) + i; }
};

/// The attributes of a pooling (kernel, or spatial_axes, and data_format) tell how a tensor of `rank` axes is read.
PoolAxes pool_axes(const Attrs& attrs, int rank);

}  // namespace partita
