// SPDX-License-Identifier: Apache-2.0
// The pieces that rows of the operator table share: type sets, attributes with their texts, ways to write them.
#pragma once

#include "src/ir/op_def.hpp"

namespace partita {

using namespace std::string_view_literals;

inline constexpr DtypeSet kF32{Dtype::f32};
inline constexpr DtypeSet kS32{Dtype::s32};
inline constexpr DtypeSet kFloats{Dtype::f32, Dtype::bf16, Dtype::f16};
inline constexpr DtypeSet kF32OrBf16{Dtype::f32, Dtype::bf16};

constexpr AttrDef required(Attr key, AttrType type, std::string_view text) {
  return {.key = key, .type = type, .need = Need::required, .text = text};
}
/// Stays absent where it is not given.
constexpr AttrDef optional(Attr key, AttrType type, std::string_view text) {
  return {.key = key, .type = type, .text = text};
}
constexpr AttrDef flag(Attr key, bool fallback, std::string_view text) {
  return {.key = key, .type = AttrType::boolean, .fallback = fallback, .text = text};
}
constexpr AttrDef number(Attr key, int64_t fallback, std::string_view text) {
  return {.key = key, .type = AttrType::s64, .fallback = fallback, .text = text};
}
constexpr AttrDef real(Attr key, float fallback, std::string_view text) {
  return {.key = key, .type = AttrType::f32, .fallback = fallback, .text = text};
}
constexpr AttrDef choice(Attr key, std::string_view fallback, Few<std::string_view, 8> allowed, std::string_view text,
                         Few<std::string_view, 8> aliases = {}) {
  return {
      .key = key, .type = AttrType::string, .fallback = fallback, .allowed = allowed, .aliases = aliases, .text = text};
}

/// Marks what oneDNN Graph's operator does not have; stays absent where it is not given.
constexpr AttrDef extension(AttrDef attr) {
  attr.fallback = {};
  attr.extension = true;
  return attr;
}

inline constexpr AttrDef kDataFormat =
    choice(Attr::data_format, "NXC", {"NCX", "NXC"}, "axis order: channels second (NCX) or last (NXC)");
inline constexpr AttrDef kAutoPad = choice(
    Attr::auto_pad, "None", {"None", "SAME_UPPER", "SAME_LOWER", "VALID"},
    "how pads are found: as given (None), so that windows and strides cover the axis with the odd cell at the end "
    "(SAME_UPPER) or at the begin (SAME_LOWER), or no padding (VALID)",
    {"none", "same_upper", "same_lower", "valid"});
inline constexpr AttrDef kAutoBroadcast =
    choice(Attr::auto_broadcast, "numpy", {"none", "numpy"},
           "numpy: dims are aligned at the right and a dim of 1 stretches; none: shapes must be equal");
inline constexpr AttrDef kStrides =
    required(Attr::strides, AttrType::s64s, "step from window to window, one positive integer a spatial axis");
inline constexpr AttrDef kPadsBegin =
    required(Attr::pads_begin, AttrType::s64s,
             "padding before each spatial axis; an empty list means none; unused with auto_pad");
inline constexpr AttrDef kPadsEnd = required(
    Attr::pads_end, AttrType::s64s, "padding after each spatial axis; an empty list means none; unused with auto_pad");
inline constexpr AttrDef kOutputPadding =
    optional(Attr::output_padding, AttrType::s64s, "further cells at the end of each spatial axis of the result");
inline constexpr AttrDef kUseDst =
    flag(Attr::use_dst, true, "true: the first input is the forward result; false: the forward source");

constexpr AttrDef epsilon(float fallback) {
  return real(Attr::epsilon, fallback, "added to the variance so that it never divides by zero");
}
inline constexpr AttrDef kEpsilonRequired =
    required(Attr::epsilon, AttrType::f32, "added to the variance so that it never divides by zero");

}  // namespace partita
