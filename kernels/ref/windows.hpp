// SPDX-License-Identifier: Apache-2.0
// Windows: which source places a sliding window (pooling, convolution) covers.
#pragma once

#include <vector>

#include "kernels/ref/planes.hpp"

namespace partita::ref {

/// The attributes of a sliding window, one entry a spatial axis. Tap t of window o lies at
/// o * stride - pad + t * dilation; it is valid where that is inside the source.
struct WindowShape {
  Dims kernel, strides, dilations, pads;

  int64_t taps() const { return elements(kernel); }
};

/// Strides, pads_begin and dilations of `attrs` for `rank` spatial axes; absent or surplus entries count as the
/// default.
inline WindowShape window_shape(const Attrs& attrs, const Dims& kernel) {
  const int rank = kernel.size();
  const auto list = [&](Attr attr, int64_t fallback) {
    const Dims given = attrs.dims(attr);
    Dims filled(rank, fallback);
    std::copy_n(given.begin(), std::min(rank, given.size()), filled.begin());
    return filled;
  };
  return {kernel, list(Attr::strides, 1), list(Attr::dilations, 1), list(Attr::pads_begin, 0)};
}

/// Calls body(index of the source place) for each valid tap of window `place`, taps in row-major order.
template <class Body>
void for_each_valid_tap(const WindowShape& shape, const Dims& place, const Dims& source, Body body) {
  const int rank = source.size();
  Dims tap(rank, 0);
  for (int64_t left = shape.taps(); left > 0; --left) {
    int64_t index = 0;
    bool inside = true;
    for (int i = 0; i < rank; ++i) {
      const int64_t x = place[i] * shape.strides[i] - shape.pads[i] + tap[i] * shape.dilations[i];
      inside = inside && x >= 0 && x < source[i];
      index = index * source[i] + x;
    }
    if (inside) body(index);
    advance(tap, shape.kernel);
  }
}

}  // namespace partita::ref
