// SPDX-License-Identifier: Apache-2.0
// Axes of poolings' tensors, from the attributes that tell their number.
#include "src/base/pool_axes.hpp"

#include "src/base/axes.hpp"

namespace partita {

PoolAxes pool_axes(const Attrs& attrs, int rank) {
  const int without_batch = rank - 1;
  const int64_t spatial = attrs.has(Attr::kernel)  ? attrs.dims(Attr::kernel).size()
                          : attrs.has(Attr::sizes) ? attrs.dims(Attr::sizes).size()
                                                   : attrs.i64_or(Attr::spatial_axes, without_batch - 1);
  return {static_cast<int>(spatial), spatial < without_batch, channels_last(attrs)};
}

}  // namespace partita
