// SPDX-License-Identifier: Apache-2.0
// PoolGeometry: a pooling problem's windows in one form for both data formats, and the divisor of an average.
#pragma once

#include "kernels/problem.hpp"
#include "partita/status.hpp"
#include "src/base/pool_axes.hpp"

namespace partita {

/// The tensor as the one item of a batch.
TensorDesc with_batch_axis(TensorDesc desc);
/// The problem with a batch axis of one item in front of every tensor that lacks it.
Problem with_batch_axis(Problem problem);
/// True where the problem's tensors have none.
bool lacks_batch_axis(const Problem& problem);

/// What an average divides by: the window's cells inside the source; its cells inside the source and its padding; all
/// its cells; or a given number.
enum class PoolDivisor : uint8_t { valid, padded_box, kernel, fixed };

/// Spatial axes in order; `src` is the bigger side (the source or its gradient), `dst` the pooled side.
struct PoolGeometry {
  bool channel_last = false;
  bool maximum = false;  ///< MaxPool family, else average
  PoolDivisor divides_by = PoolDivisor::valid;
  int64_t divisor_override = 0;  ///< PoolDivisor::fixed
  int64_t batch = 0, channels = 0;
  Dims src, dst;  ///< spatial dims
  Dims kernel, strides, dilations, pads_begin, pads_end;

  int axes() const { return src.size(); }
  /// Axis of the tensor that holds spatial axis `i`, the channels.
  int tensor_axis(int i) const { return channel_last ? 1 + i : 2 + i; }
  int channel_axis() const { return channel_last ? 1 + axes() : 1; }
  /// Cells of window `o` of axis `i` that lie inside the source: taps [begin, end).
  struct Taps {
    int64_t begin, end;
  };
  Taps taps(int i, int64_t o) const;
  /// Source cell of a tap of window `o` of axis `i`.
  int64_t cell(int i, int64_t o, int64_t tap) const { return o * strides[i] - pads_begin[i] + tap * dilations[i]; }
  /// Whether there is one window, over all cells of the source.
  bool covers_all() const;
  /// Whether every cell of the source belongs to exactly one window, and every window has all its cells there.
  bool tiles_source() const;
  /// Cells of window `o` that count along axis `i`; 0 where none is inside the source.
  int64_t counted(int i, int64_t o) const;
  /// What the average over a window divides by, of the product of what counts along its axes; 0 where it has no cell.
  double divisor_of(int64_t counted) const;
  /// The same for the window at `o`; where it is 0, the window contributes nothing.
  double divisor(const Dims& o) const;
  /// What is multiplied by instead; 0 where the window contributes nothing.
  static float reciprocal(double divisor) { return divisor == 0 ? 0.0f : static_cast<float>(1 / divisor); }
};

/// `source_like` / `pooled_like`: dims of the bigger and of the smaller tensor in the user's axis order, with a batch.
PoolGeometry pool_geometry(const Problem& problem, const Dims& source_like, const Dims& pooled_like);

/// Windows of `kernel` cells, one behind the other and without padding, as attributes of an average pooling.
void set_adjacent_windows(Attrs& attrs, const std::vector<int64_t>& kernel);

/// True for a MaxPool whose second output tells where the maxima are.
bool has_indices(const Problem& problem);

/// The index of a cell of the bigger side: n * batch + c * channel + (row-major number of the cell in its plane) *
/// cell. index_base plane: the number itself; tensor: the number of the element in row-major order of the tensor's
/// axes.
struct PoolIndex {
  int64_t batch = 0, channel = 0, cell = 1;
  int64_t first(int64_t n, int64_t c) const { return n * batch + c * channel; }
};
PoolIndex pool_index(const Attrs& attrs, const PoolGeometry& g);
/// What is said of an index that names no cell: of window `window` (row-major) of `plane` (n * channels + c).
Status bad_pool_index(const Attrs& attrs, const PoolGeometry& g, int64_t plane, int64_t window, int64_t index);

}  // namespace partita
