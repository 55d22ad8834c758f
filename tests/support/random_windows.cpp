// SPDX-License-Identifier: Apache-2.0
// Random sizes, strides, dilations and pads that fit together.
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

/// False where a window lies completely in the padding.
bool windows_have_cells(int64_t wide, int64_t narrow, int64_t kernel, int64_t stride, int64_t dilation, int64_t begin) {
  for (int64_t window = 0; window < narrow; ++window) {
    int64_t cells = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = window * stride - begin + k * dilation;
      cells += at >= 0 && at < wide;
    }
    if (cells == 0) return false;
  }
  return true;
}

/// False where the drawn numbers give no window, or one without cells.
bool add_axis(Random& random, const GeometryLimits& limits, Geometry& g) {
  const int64_t wide = random.whole(1, 9), kernel = random.whole(1, 3), stride = random.whole(1, 3);
  const int64_t dilation = limits.dilated ? random.pick<int64_t>({1, 1, 2}) : 1;
  const int64_t extent = (kernel - 1) * dilation + 1;
  const int64_t begin = random.whole(0, 2), end = random.whole(0, 2);
  const int64_t room = wide + begin + end - extent;
  if (room < 0) return false;
  const int64_t narrow = (limits.round_up ? (room + stride - 1) / stride : room / stride) + 1;
  if (!windows_have_cells(wide, narrow, kernel, stride, dilation, begin)) return false;
  g.add({wide, narrow, kernel, stride, dilation, begin, end, limits.round_up ? 0 : room % stride});
  return true;
}

}  // namespace

void Geometry::add(const Axis& axis) {
  wide.push_back(axis.wide);
  narrow.push_back(axis.narrow);
  kernel.push_back(axis.kernel);
  strides.push_back(axis.stride);
  dilations.push_back(axis.dilation);
  pads_begin.push_back(axis.begin);
  pads_end.push_back(axis.end);
  leftover.push_back(axis.leftover);
}

Geometry geometry_of(const std::vector<int64_t>& wide, const std::vector<int64_t>& kernel,
                     const std::vector<int64_t>& strides, const std::vector<int64_t>& pads,
                     const std::vector<int64_t>& dilations) {
  Geometry g{wide, {}, kernel, strides, dilations, pads, pads, {}};
  for (size_t i = 0; i < wide.size(); ++i)
    g.narrow.push_back((wide[i] + 2 * pads[i] - (kernel[i] - 1) * dilations[i] - 1) / strides[i] + 1);
  return g;
}

Geometry random_geometry(Random& random, const GeometryLimits& limits) {
  Geometry geometry;
  const int64_t axes = random.whole(limits.min_axes, limits.max_axes);
  while (static_cast<int64_t>(geometry.wide.size()) < axes) add_axis(random, limits, geometry);
  return geometry;
}

Attrs window_attrs(const Geometry& geometry, bool channel_last) {
  Attrs attrs;
  attrs.set(Attr::strides, geometry.strides);
  attrs.set(Attr::pads_begin, geometry.pads_begin);
  attrs.set(Attr::pads_end, geometry.pads_end);
  attrs.set(Attr::dilations, geometry.dilations);
  attrs.set(Attr::auto_pad, std::string("None"));
  attrs.set(Attr::data_format, std::string(channel_last ? "NXC" : "NCX"));
  return attrs;
}

Dims activation_dims(int64_t batch, int64_t channels, const std::vector<int64_t>& spatial, bool channel_last) {
  Dims dims{batch};
  if (!channel_last) dims.push_back(channels);
  for (int64_t size : spatial) dims.push_back(size);
  if (channel_last) dims.push_back(channels);
  return dims;
}

}  // namespace partita::test
