// SPDX-License-Identifier: Apache-2.0
// Where data_format and weights_format put the axes of a tensor.
#pragma once

#include "src/base/attrs.hpp"

namespace partita {

/// The default where the attribute is absent, too.
inline bool channels_last(const Attrs& attrs) { return !attrs.is(Attr::data_format, "NCX"); }
/// A tensor of one axis has channels alone.
inline int channel_axis(const Attrs& attrs, int rank) { return channels_last(attrs) || rank < 2 ? rank - 1 : 1; }
inline int first_spatial_axis(const Attrs& attrs) { return channels_last(attrs) ? 1 : 2; }
/// The dims of the spatial axes alone.
Dims spatial_dims(const Attrs& attrs, const Dims& dims);
/// Batch, channels and spatial dims put together as data_format says.
Dims data_dims(const Attrs& attrs, int64_t batch, int64_t channels, const Dims& spatial);

/// Axes of a filter. A window turns the `wide` side (src of a convolution, dst of a transposed one) into one cell of
/// the `narrow` side. Narrow channels are all in the filter, wide channels only those of one group.
struct FilterAxes {
  int narrow = 0;
  int wide = 1;
  int spatial = 2;
};
FilterAxes filter_axes(const Attrs& attrs, int rank);

/// Whether a convolution of any direction has windows of one cell each, one for each cell: every cell of the one side
/// is made of one of the other. `weights`: dims of the filter. Groups are the caller's concern.
bool is_pointwise(const Attrs& attrs, const Dims& weights);

}  // namespace partita
