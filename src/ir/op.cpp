// SPDX-License-Identifier: Apache-2.0
// op: its attributes, and the names of operator kinds and attributes.
#include "partita/op.hpp"

#include <algorithm>
#include <iterator>

#include "src/ir/op_def.hpp"

namespace partita {
namespace {

struct AttrName {
  Attr key;
  std::string_view name;
};

constexpr AttrName kAttrNames[] = {
    {Attr::alpha, "alpha"},
    {Attr::beta, "beta"},
    {Attr::epsilon, "epsilon"},
    {Attr::max, "max"},
    {Attr::min, "min"},
    {Attr::momentum, "momentum"},
    {Attr::scales, "scales"},
    {Attr::axis, "axis"},
    {Attr::begin_norm_axis, "begin_norm_axis"},
    {Attr::groups, "groups"},
    {Attr::mask, "mask"},
    {Attr::axes, "axes"},
    {Attr::dilations, "dilations"},
    {Attr::dst_shape, "dst_shape"},
    {Attr::kernel, "kernel"},
    {Attr::order, "order"},
    {Attr::output_padding, "output_padding"},
    {Attr::pads_begin, "pads_begin"},
    {Attr::pads_end, "pads_end"},
    {Attr::shape, "shape"},
    {Attr::sizes, "sizes"},
    {Attr::src_shape, "src_shape"},
    {Attr::strides, "strides"},
    {Attr::weights_shape, "weights_shape"},
    {Attr::zps, "zps"},
    {Attr::group_shape, "group_shape"},
    {Attr::exclude_pad, "exclude_pad"},
    {Attr::keep_dims, "keep_dims"},
    {Attr::keep_stats, "keep_stats"},
    {Attr::per_channel_broadcast, "per_channel_broadcast"},
    {Attr::special_zero, "special_zero"},
    {Attr::transpose_a, "transpose_a"},
    {Attr::transpose_b, "transpose_b"},
    {Attr::use_affine, "use_affine"},
    {Attr::use_dst, "use_dst"},
    {Attr::auto_broadcast, "auto_broadcast"},
    {Attr::auto_pad, "auto_pad"},
    {Attr::coordinate_transformation_mode, "coordinate_transformation_mode"},
    {Attr::data_format, "data_format"},
    {Attr::mode, "mode"},
    {Attr::qtype, "qtype"},
    {Attr::rounding_type, "rounding_type"},
    {Attr::weights_format, "weights_format"},
    {Attr::accumulation_mode, "accumulation_mode"},
    {Attr::divisor_override, "divisor_override"},
    {Attr::exclude_overhang, "exclude_overhang"},
    {Attr::index_base, "index_base"},
    {Attr::spatial_axes, "spatial_axes"},
};

}  // namespace

std::string_view name_of(OpKind kind) {
  const OpDef* def = find_op(kind);
  return def ? def->name : std::string_view("unknown");
}

std::string_view name_of(Attr attr) {
  const auto* row = std::ranges::find(kAttrNames, attr, &AttrName::key);
  return row != std::end(kAttrNames) ? row->name : std::string_view("unknown");
}

std::optional<OpKind> op_kind_named(std::string_view name) {
  for (const OpDef* def : all_ops()) {
    if (def->name == name) return def->kind;
  }
  return std::nullopt;
}

std::optional<Attr> attr_named(std::string_view name) {
  const auto* row = std::ranges::find(kAttrNames, name, &AttrName::name);
  if (row == std::end(kAttrNames)) return std::nullopt;
  return row->key;
}

op& op::set_attr(Attr attr, AttrValue value) {
  const auto at = std::ranges::lower_bound(attrs_, attr, {}, &std::pair<Attr, AttrValue>::first);
  const bool present = at != attrs_.end() && at->first == attr;
  if (std::holds_alternative<std::monostate>(value)) {
    if (present) attrs_.erase(at);
  } else if (present) {
    at->second = std::move(value);
  } else {
    attrs_.emplace(at, attr, std::move(value));
  }
  return *this;
}

const AttrValue& op::attr(Attr attr) const {
  static const AttrValue kAbsent;
  const auto at = std::ranges::lower_bound(attrs_, attr, {}, &std::pair<Attr, AttrValue>::first);
  return at != attrs_.end() && at->first == attr ? at->second : kAbsent;
}

}  // namespace partita
