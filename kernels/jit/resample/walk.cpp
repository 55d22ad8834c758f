// SPDX-License-Identifier: Apache-2.0
// Which layout a resampling is walked in, and what axes are joined.
#include "kernels/jit/resample/walk.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "kernels/jit/resample/columns.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostJoined = 2048;  ///< places read or made: tables of picks stay in the nearest caches

AxisMap map_of(const Problem& p, int axis) {
  if (axis < 0) return identity_map(1);
  const int64_t read = p.in[static_cast<size_t>(front_port(p.step))].dims[axis], made = p.out[0].dims[axis];
  if (p.op == OpKind::AdaptiveAvgPool) return adaptive_map(read, made);
  if (p.op == OpKind::AdaptiveAvgPoolBackward) return adaptive_map(made, read).transposed();
  return p.step == StepKind::resample ? interpolation_map(read, made, p.attrs)
                                      : interpolation_map(made, read, p.attrs).transposed();
}

const char* refuse_walked(const Problem& p, const PlaneWalk& walk, const TensorDesc& desc, int64_t extent,
                          bool output) {
  if (output ? !Emitter::stores(desc.dtype) : !Emitter::loads(desc.dtype))
    return "an operand's type has no generated conversion";
  const WalkedTensor t = walked(desc, p, walk);
  const int step = std::max(t.row_step(walk, extent), walk.channel_last ? t.channel_step(walk) : -1);
  return step < (output ? 1 : 0) ? "an operand's elements are not next to each other" : nullptr;
}

/// Calls refuse(tensor, of the sources, an output) for all tensors until one is refused; null where none is.
template <class F>
const char* refuse_any(const Problem& p, F refuse) {
  for (int k : loaded_operands(front_expression(p)))
    if (const char* reason = refuse(p.in[static_cast<size_t>(k)], true, false)) return reason;
  for (int k : loaded_operands(back_expression(p)))
    if (const char* reason = refuse(p.in[static_cast<size_t>(k)], false, false)) return reason;
  for (const TensorDesc& desc : p.out)
    if (const char* reason = refuse(desc, false, true)) return reason;
  return nullptr;
}

const char* refuse_layout(const Problem& p, const PlaneWalk& walk) {
  return refuse_any(p, [&](const TensorDesc& desc, bool source, bool output) {
    return refuse_walked(p, walk, desc, source ? walk.x.from() : walk.x.to(), output);
  });
}

/// `walk` with one more axis joined with x; nothing where that is worth nothing or tensors have gaps between rows.
std::optional<PlaneWalk> with_joined_axis(const Problem& p, const PlaneWalk& walk, Isa isa) {
  const PlaneAxes axes = plane_axes(p);
  const int axis = walk.joined == 0 ? axes.y : axes.z;
  if (walk.channel_last || walk.joined == 2 || axis < 0 || walk.x.to() >= lanes_of(isa)) return {};
  PlaneWalk joined = walk;
  AxisMap& before = walk.joined == 0 ? joined.y : joined.z;
  if (std::max(before.from() * walk.x.from(), before.to() * walk.x.to()) > kMostJoined) return {};
  const char* gaps = refuse_any(p, [&](const TensorDesc& desc, bool source, bool) {
    const int64_t step = walked(desc, p, walk).x, extent = source ? walk.x.from() : walk.x.to();
    return desc.strides[axis] * element_bytes(desc.dtype) != step * extent ? "rows do not follow each other" : nullptr;
  });
  if (gaps) return {};
  joined.x = joined_map(before, walk.x);
  before = identity_map(1);
  joined.y = identity_map(p.out[0].dims[axes.c]);
  joined.inner = 1;
  ++joined.joined;
  if (refuse_layout(p, joined) || !picks_by_permutation(isa, joined.x)) return {};
  return joined;
}

}  // namespace

PlaneWalk resample_walk(const Problem& p, bool channel_last) {
  const PlaneAxes axes = plane_axes(p);
  const Dims& made = p.out[0].dims;
  PlaneWalk walk{.channel_last = channel_last, .outer = made[0], .z = {}, .y = {}, .x = map_of(p, axes.x)};
  walk.z = map_of(p, axes.z);
  if (channel_last) {
    walk.channels = made[axes.c];
    walk.y = map_of(p, axes.y);
  } else if (axes.y < 0) {
    walk.y = identity_map(made[axes.c]);
  } else {
    walk.inner = made[axes.c];
    walk.y = map_of(p, axes.y);
  }
  return walk;
}

PlaneWalk joined_plane_walk(const Problem& p, bool channel_last, Isa isa) {
  PlaneWalk walk = resample_walk(p, channel_last);
  while (std::optional<PlaneWalk> joined = with_joined_axis(p, walk, isa)) walk = *std::move(joined);
  return walk;
}

const char* refuse_resample_walk(const Problem& p, bool& channel_last) {
  const int c = plane_axes(p).c;
  // One channel makes no difference where x is next to each other; rows then are longer.
  const bool first = p.out[0].dims[c] > 1 && p.out[0].strides[c] == 1;
  const char* reason = nullptr;
  for (bool last : {first, !first}) {
    channel_last = last;
    const char* refused = refuse_layout(p, resample_walk(p, last));
    if (!refused) return nullptr;
    if (last == first) reason = refused;
  }
  return reason;
}

}  // namespace partita::jit
