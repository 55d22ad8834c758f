// SPDX-License-Identifier: Apache-2.0
// Where data_format and weights_format put the axes of a tensor.
#include "src/base/axes.hpp"

#include <algorithm>

namespace partita {
namespace {

bool all_are(const Dims& list, int64_t value) {
  return std::ranges::all_of(list, [&](int64_t entry) { return entry == value; });
}

}  // namespace

Dims spatial_dims(const Attrs& attrs, const Dims& dims) {
  Dims spatial;
  const int first = first_spatial_axis(attrs);
  for (int i = 0; i < dims.size() - 2; ++i) spatial.push_back(dims[first + i]);
  return spatial;
}

Dims data_dims(const Attrs& attrs, int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims{batch};
  if (!channels_last(attrs)) dims.push_back(channels);
  for (int64_t d : spatial) dims.push_back(d);
  if (channels_last(attrs)) dims.push_back(channels);
  return dims;
}

FilterAxes filter_axes(const Attrs& attrs, int rank) {
  // OIX of a convolution and IOX of a transposed one are the same order, as are XIO and XOI: the letters change sides.
  const bool spatial_last = attrs.is(Attr::weights_format, "OIX") || attrs.is(Attr::weights_format, "IOX");
  if (spatial_last) return {.narrow = 0, .wide = 1, .spatial = 2};
  return {.narrow = rank - 1, .wide = rank - 2, .spatial = 0};
}

bool is_pointwise(const Attrs& attrs, const Dims& weights) {
  const int first = filter_axes(attrs, weights.size()).spatial;
  for (int d = first; d < first + weights.size() - 2; ++d)
    if (weights[d] != 1) return false;
  if (!all_are(attrs.dims(Attr::strides), 1) || !all_are(attrs.dims(Attr::output_padding), 0)) return false;
  // auto_pad gives such windows no padding, and looks at no list.
  if (attrs.has(Attr::auto_pad) && !attrs.is(Attr::auto_pad, "None")) return true;
  return all_are(attrs.dims(Attr::pads_begin), 0) && all_are(attrs.dims(Attr::pads_end), 0);
}

}  // namespace partita
