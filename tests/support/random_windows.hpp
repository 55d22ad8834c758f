// SPDX-License-Identifier: Apache-2.0
// Random geometry of sliding windows for tests of convolutions and poolings.
#pragma once

#include "tests/support/random_problem.hpp"

namespace partita::test {

/// Windows over `wide` spatial cells give `narrow` results an axis; none lies completely in the padding.
struct Geometry {
  struct Axis {
    int64_t wide, narrow, kernel, stride, dilation = 1, begin = 0, end = 0, leftover = 0;
  };
  void add(const Axis& axis);

  std::vector<int64_t> wide, narrow, kernel, strides, dilations, pads_begin, pads_end, leftover;
};

/// As many windows as fit, with the same pads on both sides.
Geometry geometry_of(const std::vector<int64_t>& wide, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& strides, const std::vector<int64_t>& pads,
                     const std::vector<int64_t>& dilations);

struct GeometryLimits {
  int min_axes = 1, max_axes = 3;
  bool dilated = true;
  bool round_up = false;  ///< sizes of rounding_type=ceil
};
Geometry random_geometry(Random& random, const GeometryLimits& limits);

/// strides, pads, dilations, data_format (and kernel for poolings) as an operator's attributes.
Attrs window_attrs(const Geometry& geometry, bool channel_last);
/// Batch, channels and spatial sizes in the order of the data format.
Dims activation_dims(int64_t batch, int64_t channels, const std::vector<int64_t>& spatial, bool channel_last);

}  // namespace partita::test
