// SPDX-License-Identifier: Apache-2.0
// Windows of pooling: the one place where the divisor of an average is computed.
#include "kernels/pool_geometry.hpp"

#include <algorithm>

#include "src/base/shape.hpp"

namespace partita {

PoolGeometry::Taps PoolGeometry::taps(int i, int64_t o) const {
  const int64_t start = o * strides[i] - pads_begin[i], d = dilations[i];
  const int64_t begin = start < 0 ? (-start + d - 1) / d : 0;
  const int64_t end = start >= src[i] ? 0 : std::min(kernel[i], (src[i] - start + d - 1) / d);
  return {begin, std::max(begin, end)};
}

double PoolGeometry::divisor_of(int64_t valid) const {
  return static_cast<double>(valid > 0 && count_padding ? elements(kernel) : valid);
}

double PoolGeometry::divisor(const Dims& o) const {
  int64_t valid = 1;
  for (int i = 0; i < axes(); ++i) valid *= taps(i, o[i]).end - taps(i, o[i]).begin;
  return divisor_of(valid);
}

double PoolGeometry::axis_divisor(int i, int64_t o) const {
  const Taps t = taps(i, o);
  return static_cast<double>(t.end > t.begin && count_padding ? kernel[i] : t.end - t.begin);
}

PoolGeometry pool_geometry(const Problem& problem, const Dims& source_like, const Dims& pooled_like) {
  PoolGeometry g;
  const Attrs& a = problem.attrs;
  g.channel_last = a.is(Attr::data_format, "NXC");
  g.maximum = problem.op == OpKind::MaxPool || problem.op == OpKind::MaxPoolBackward;
  g.count_padding = !g.maximum && !a.flag(Attr::exclude_pad);
  g.kernel = a.dims(Attr::kernel);
  g.strides = a.dims(Attr::strides);
  g.pads_begin = a.dims(Attr::pads_begin);
  g.dilations = a.has(Attr::dilations) ? a.dims(Attr::dilations) : Dims(g.kernel.size(), 1);
  const int axes = source_like.size() - 2;
  g.batch = source_like[0];
  g.channels = source_like[g.channel_last ? axes + 1 : 1];
  for (int i = 0; i < axes; ++i) {
    const int axis = g.channel_last ? 1 + i : 2 + i;
    g.src.push_back(source_like[axis]);
    g.dst.push_back(pooled_like[axis]);
  }
  return g;
}

}  // namespace partita
