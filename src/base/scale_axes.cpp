// SPDX-License-Identifier: Apache-2.0
// From attributes to the axes of scales.
#include "src/base/scale_axes.hpp"

#include <algorithm>

#include "src/base/shape.hpp"

namespace partita {
namespace {

/// `dims` are those of the chosen axes, in their order.
template <class Chosen>
std::optional<Dims> strides_along(const ScaleAxes& axes, const Dims& dims, const Dims& strides, Chosen chosen) {
  Dims made(axes.dims.size(), 0);
  int next = 0;
  for (int d = 0; d < axes.dims.size(); ++d) {
    if (!chosen(d)) continue;
    if (next == dims.size()) return std::nullopt;
    if (dims[next] != axes.dims[d]) return std::nullopt;
    if (dims[next] != 1) made[d] = strides[next];
    ++next;
  }
  if (next != dims.size()) return std::nullopt;
  return made;
}

}  // namespace

ScaleAxes scale_axes(const Attrs& attrs, const Dims& src) {
  const int rank = src.size();
  ScaleAxes made{Dims(rank, 1), Dims(rank, 1), 0};
  const bool by_group = attrs.is(Attr::qtype, "per_group");
  if (attrs.has(Attr::mask)) {
    made.varying = static_cast<uint64_t>(attrs.i64(Attr::mask));
  } else if (by_group) {
    made.varying = (uint64_t{1} << rank) - 1;
  } else if (attrs.is(Attr::qtype, "per_channel")) {
    if (const std::optional<int> axis = normal_axis(attrs.i64_or(Attr::axis, 1), rank))
      made.varying = uint64_t{1} << *axis;
  }
  const bool grouped = (by_group || attrs.has(Attr::mask)) && attrs.has(Attr::group_shape);
  for (int d = 0; d < rank; ++d) {
    if (!(made.varying >> d & 1)) continue;
    if (grouped) made.group[d] = attrs.ints(Attr::group_shape)[static_cast<size_t>(d)];
    made.dims[d] = src[d] / made.group[d];
  }
  return made;
}

std::optional<Dims> strides_of_scales(const ScaleAxes& axes, const Dims& dims, const Dims& strides) {
  const auto holds_one = [](const Dims& d) { return std::ranges::count(d, 1) == d.size(); };
  if (holds_one(dims) && holds_one(axes.dims)) return Dims(axes.dims.size(), 0);
  if (auto whole = strides_along(axes, dims, strides, [](int) { return true; })) return whole;
  if (auto packed = strides_along(axes, dims, strides, [&](int d) { return (axes.varying >> d & 1) != 0; }))
    return packed;
  return strides_along(axes, dims, strides, [&](int d) { return axes.dims[d] != 1; });
}

}  // namespace partita
