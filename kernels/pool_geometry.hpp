// SPDX-License-Identifier: Apache-2.0
// PoolGeometry: a pooling problem's windows in one form for both data formats, and the divisor of an average.
#pragma once

#include "kernels/problem.hpp"

namespace partita {

/// Spatial axes in order; `src` is the bigger side (the source or its gradient), `dst` the pooled side.
struct PoolGeometry {
  bool channel_last = false;
  bool maximum = false;         ///< MaxPool family, else average
  bool count_padding = false;   ///< averages divide by the whole kernel instead of the valid cells
  int64_t batch = 0, channels = 0;
  Dims src, dst;                ///< spatial dims
  Dims kernel, strides, dilations, pads_begin;

  int axes() const { return src.size(); }
  /// Axis of the tensor that holds spatial axis `i`, the channels.
  int tensor_axis(int i) const { return channel_last ? 1 + i : 2 + i; }
  int channel_axis() const { return channel_last ? 1 + axes() : 1; }
  /// Cells of window `o` of axis `i` that lie inside the source: taps [begin, end).
  struct Taps { int64_t begin, end; };
  Taps taps(int i, int64_t o) const;
  /// Source cell of a tap of window `o` of axis `i`.
  int64_t cell(int i, int64_t o, int64_t tap) const { return o * strides[i] - pads_begin[i] + tap * dilations[i]; }
  /// What the average over a window with `valid` valid cells divides by; 0 where it has none.
  double divisor_of(int64_t valid) const;
  /// The same for the window at `o`; where it is 0, the window contributes nothing.
  double divisor(const Dims& o) const;
  /// The share of axis `i` in the divisor of windows whose place there is `o`.
  double axis_divisor(int i, int64_t o) const;
};

/// `source_like` / `pooled_like`: dims of the bigger and of the smaller tensor in the user's axis order.
PoolGeometry pool_geometry(const Problem& problem, const Dims& source_like, const Dims& pooled_like);

}  // namespace partita
