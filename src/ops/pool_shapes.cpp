// SPDX-License-Identifier: Apache-2.0
// Axes and ranks of poolings' tensors.
#include "src/ops/pool_shapes.hpp"

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita {

Dims pool_spatial(const Attrs& attrs, const Dims& dims) {
  const PoolAxes axes = pool_axes(attrs, dims.size());
  Dims spatial;
  for (int i = 0; i < axes.spatial; ++i) spatial.push_back(dims[axes.spatial_axis(i)]);
  return spatial;
}

Dims with_pool_spatial(const Attrs& attrs, const Dims& like, const Dims& spatial) {
  const PoolAxes axes = pool_axes(attrs, like.size());
  Dims dims = like;
  for (int i = 0; i < axes.spatial; ++i) dims[axes.spatial_axis(i)] = spatial[i];
  return dims;
}

Status gradient_shape(ShapeContext& c, Status (*fits)(ShapeContext&, const Dims& src)) {
  if (const std::optional<Dims> src = wanted_shape(c, Attr::src_shape)) {
    if (src->size() != c.rank(0)) return c.wrong(str(c.output_text(0), ", it must have the rank of ", c.input_text(0)));
    PT_TRY(fits(c, *src));
    return c.set(0, *src);
  }
  // The shape arrives at execution; batch and channels are known before.
  return c.set(0, with_pool_spatial(c.attrs(), c.in(0), Dims(pool_spatial(c.attrs(), c.in(0)).size(), kUnknownDim)));
}

bool pool_rank_fits(const OpView& v) {
  for (const logical_tensor* t : {&v.in(0), &v.out(0)})
    if (t->rank_known && (t->rank() < 2 || t->rank() > 5)) return false;
  return true;
}

bool pool_lists_fit(const OpView& v) {
  const Attrs& attrs = v.attrs();
  const size_t axes = attrs.ints(Attr::kernel).size();
  if (axes < 1 || axes > 3) return false;
  for (Attr attr : {Attr::strides, Attr::dilations})
    if (attrs.has(attr) && attrs.ints(attr).size() != axes) return false;
  for (Attr attr : {Attr::pads_begin, Attr::pads_end}) {
    const size_t found = attrs.ints(attr).size();
    if (attrs.is(Attr::auto_pad, "None") && found != 0 && found != axes) return false;
  }
  for (const logical_tensor* t : {&v.in(0), &v.out(0)}) {
    const int more = t->rank() - static_cast<int>(axes);
    if (t->rank_known && more != 1 && more != 2) return false;
  }
  return true;
}

bool spatial_axes_fit(const OpView& v) {
  const int rank = known_rank(v, 0);
  const Attrs& attrs = v.attrs();
  if (rank < 0 || (!attrs.has(Attr::spatial_axes) && !attrs.has(Attr::sizes))) return rank < 0 || rank >= 3;
  const int64_t axes = attrs.has(Attr::sizes) ? std::ssize(attrs.ints(Attr::sizes)) : attrs.i64(Attr::spatial_axes);
  return axes >= 1 && axes <= 3 && (rank == axes + 1 || rank == axes + 2);
}

}  // namespace partita
