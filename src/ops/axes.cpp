// SPDX-License-Identifier: Apache-2.0
// Where data_format and weights_format put the axes of a tensor.
#include "src/ops/axes.hpp"

namespace partita {

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

}  // namespace partita
