// SPDX-License-Identifier: Apache-2.0
// How tensors lie in memory. What counts is where elements are, not what data_format calls it.
#include "kernels/jit/taps/planes.hpp"

#include <algorithm>
#include <array>

#include "src/base/axes.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {

PlaneAxes plane_axes(const Problem& p) {
  const int rank = p.out[0].dims.size(), spatial = rank - 2;
  const int first = first_spatial_axis(p.attrs);
  const auto axis = [&](int from_end) { return from_end <= spatial ? first + spatial - from_end : -1; };
  return {channel_axis(p.attrs, rank), axis(3), axis(2), axis(1)};
}

PlaneWalk with_channels_in_rows(PlaneWalk walk) {
  walk.x = joined_map(walk.x, identity_map(walk.channels));
  return walk;
}

int WalkedTensor::row_step(const PlaneWalk& walk, int64_t extent) const {
  const bool one_channel = walk.channels == 1, one_place = extent == 1;
  if ((one_channel || c == each) && (one_place || x == walk.channels * each)) return 1;
  return (one_channel || c == 0) && (one_place || x == 0) ? 0 : -1;
}

int WalkedTensor::channel_step(const PlaneWalk& walk) const {
  if (walk.channels == 1 || c == each) return 1;
  return c == 0 ? 0 : -1;
}

bool WalkedTensor::at_cache_lines(bool places) const {
  return std::ranges::all_of(std::array{offset, outer, inner, z, y, places ? x : 0},
                             [](int64_t distance) { return distance % kCacheLine == 0; });
}

WalkedTensor walked(const TensorDesc& desc, const Problem& p, const PlaneWalk& walk) {
  const PlaneAxes axes = plane_axes(p);
  WalkedTensor t{.dtype = desc.dtype, .each = element_bytes(desc.dtype)};
  const auto stride = [&](int axis) { return axis < 0 ? 0 : desc.strides[axis] * t.each; };
  t.offset = desc.offset * t.each;
  t.outer = stride(0);
  t.z = stride(axes.z);
  t.y = stride(axes.y);
  t.x = stride(axes.x);
  const int64_t channel = stride(axes.c);
  if (walk.joined == 2) t.z = 0;
  if (walk.channel_last)
    t.c = channel;
  else if (axes.y < 0 || walk.joined > 0)
    t.y = channel;
  else
    t.inner = channel;
  return t;
}

}  // namespace partita::jit
