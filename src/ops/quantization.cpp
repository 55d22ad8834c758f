// SPDX-License-Identifier: Apache-2.0
// Quantization and dequantization, with scales in attributes or (dynamic) in tensors. Their expressions need the
// scales, so lowering writes them.
#include "src/base/check.hpp"
#include "src/base/scale_axes.hpp"
#include "src/base/shape.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool per_channel(const OpView& v) { return v.attrs().is(Attr::qtype, "per_channel"); }

/// The dim of src that scales go along, or kUnknownDim.
int64_t scaled_dim(const OpView& v) {
  const int rank = known_rank(v, 0);
  if (rank < 0) return kUnknownDim;
  const std::optional<int> axis = normal_axis(v.attrs().i64(Attr::axis), rank);
  return axis ? v.in(0).dims[*axis] : kUnknownDim;
}

bool channel_axis_fits(const OpView& v) { return !per_channel(v) || axis_fits(v, Attr::axis); }

/// Weights of a grouped ConvTranspose: groups lie along axis 0, each has its own entry an index of `axis`.
bool fits_groups(const OpView& v, int64_t entries, int64_t dim) {
  const Dims& dims = v.in(0).dims;
  const std::optional<int> axis = normal_axis(v.attrs().i64(Attr::axis), dims.size());
  if (!axis || *axis == 0 || dim < 1 || entries < 1 || entries % dim != 0 || dims[0] == kUnknownDim) return false;
  return dims[0] % (entries / dim) == 0;
}

bool scales_count(const OpView& v) {
  const auto found = static_cast<int64_t>(v.attrs().floats(Attr::scales).size());
  if (!per_channel(v)) return found == 1;
  const int64_t dim = scaled_dim(v);
  return dim == kUnknownDim ? found > 0 : found == dim || fits_groups(v, found, dim);
}

bool zps_count(const OpView& v) {
  return !v.attrs().has(Attr::zps) || v.attrs().ints(Attr::zps).size() == v.attrs().floats(Attr::scales).size();
}

bool is_f8(Dtype t) { return t == Dtype::f8_e5m2 || t == Dtype::f8_e4m3; }
bool f8_without_zps_input(const OpView& v) { return v.inputs() < 3 || (!is_f8(v.in_type(0)) && !is_f8(v.out_type(0))); }
bool f8_without_zps(const OpView& v) {
  if (!v.attrs().has(Attr::zps) || (!is_f8(v.in_type(0)) && !is_f8(v.out_type(0)))) return true;
  const auto& zps = v.attrs().ints(Attr::zps);
  return std::all_of(zps.begin(), zps.end(), [](int64_t z) { return z == 0; });
}

bool holds_one(const logical_tensor& t) {
  if (!t.rank_known) return true;
  return std::ranges::all_of(t.dims, [](int64_t d) { return d == 1 || d == kUnknownDim; });
}

/// `mask` takes the place of `qtype` and `axis`.
bool mask_fits(const OpView& v) {
  if (!v.attrs().has(Attr::mask)) return true;
  const int rank = known_rank(v, 0);
  const int64_t mask = v.attrs().i64(Attr::mask);
  if (mask < 0 || mask >> (rank < 0 ? kMaxRank : rank) != 0) return false;
  return v.attrs().is(Attr::qtype, "per_tensor") && v.attrs().i64(Attr::axis) == 1;
}

/// One positive entry an axis that divides its dim.
bool divides(const std::vector<int64_t>& group, const OpView& v) {
  if (std::ranges::any_of(group, [](int64_t g) { return g < 1; })) return false;
  if (known_rank(v, 0) < 0) return true;
  const Dims& src = v.in(0).dims;
  if (static_cast<int>(group.size()) != src.size()) return false;
  for (int i = 0; i < src.size(); ++i) {
    if (src[i] != kUnknownDim && src[i] % group[static_cast<size_t>(i)] != 0) return false;
  }
  return true;
}

bool group_shape_fits(const OpView& v) {
  if (!v.attrs().is(Attr::qtype, "per_group")) return true;
  return v.attrs().has(Attr::group_shape) && divides(v.attrs().ints(Attr::group_shape), v);
}

bool mask_groups_fit(const OpView& v) {
  if (!v.attrs().has(Attr::mask) || !v.attrs().has(Attr::group_shape)) return true;
  const std::vector<int64_t>& group = v.attrs().ints(Attr::group_shape);
  if (!divides(group, v)) return false;
  for (int i = 0; i < known_rank(v, 0); ++i) {
    const int64_t dim = v.in(0).dims[i];
    const bool varies = (v.attrs().i64(Attr::mask) >> i & 1) != 0;
    if (!varies && dim != kUnknownDim && group[static_cast<size_t>(i)] != dim) return false;
  }
  return true;
}

bool varies_like_scales(const OpView& v, int input) {
  if (!v.in(0).shape_known() || !v.in(input).shape_known()) return true;  // looked at again when they are known
  const Dims& dims = v.in(input).dims;
  return strides_of_scales(scale_axes(v.attrs(), v.in(0).dims), dims, Dims(dims.size(), 0)).has_value();
}

bool scales_shape(const OpView& v) { return varies_like_scales(v, 1); }
bool zps_shape(const OpView& v) { return v.inputs() < 3 || holds_one(v.in(2)) || varies_like_scales(v, 2); }

/// oneDNN documents zero points of the source's width or s32.
bool documented_zps(const OpView& v) {
  const auto four_bits = [](Dtype t) { return t == Dtype::s4 || t == Dtype::u4; };
  return v.in_type(2) == Dtype::s32 || four_bits(v.in_type(0)) == four_bits(v.in_type(2));
}

constexpr DtypeSet kF8{Dtype::f8_e5m2, Dtype::f8_e4m3};
constexpr AttrDef kAxis = number(Attr::axis, 1, "axis that per_channel scales go along; negative counts from the end");
constexpr AttrDef kQtype =
    choice(Attr::qtype, "per_tensor", {"per_tensor", "per_channel"}, "one scale, or one an index of axis");
constexpr AttrDef kQtypeWithGroups = choice(Attr::qtype, "per_tensor", {"per_tensor", "per_channel", "per_group"},
                                            "one scale, one an index of axis, or one for each block of group_shape");
constexpr AttrDef kScales = required(Attr::scales, AttrType::f32s, "factors between real and quantized values");
constexpr AttrDef kZps =
    optional(Attr::zps, AttrType::s64s, "quantized values of zero, as many as scales; absent means 0");

constexpr CheckDef kChannelAxis = {"quantized_axis_in_range",
                                   "`axis` must be in [-rank, rank) of `src` where `qtype` is per_channel",
                                   channel_axis_fits};
constexpr CheckDef kScalesCount = {
    "scales_count",
    "`scales` must have one entry where `qtype` is per_tensor, and one an index of `axis` of `src` (or that for each "
    "of several groups along axis 0) where it is per_channel",
    scales_count};
constexpr CheckDef kZpsCount = {"zps_count", "`zps` must have as many entries as `scales`", zps_count};
constexpr CheckDef kF8WithoutZps = {"f8_without_zps", "`zps` must be absent or 0 where `src` or `dst` is an f8 type",
                                    f8_without_zps};
constexpr AttrDef kMask = optional(Attr::mask, AttrType::s64,
                                   "axes along which scales vary, bit i for axis i, in place of qtype and axis");

constexpr CheckDef kMaskFits = {"mask_fits",
                                "`mask` must have no bits but those of axes of `src`, and beside it `qtype` and `axis` "
                                "must have their defaults",
                                mask_fits};
constexpr CheckDef kF8WithoutZpsInput = {
    "f8_without_zps_input", "`zps` must be absent where `src` or `dst` is an f8 type", f8_without_zps_input, true};
constexpr CheckDef kGroupShape = {
    "group_shape_fits",
    "where `qtype` is per_group, `group_shape` must have one positive entry an axis that divides the dim of "
    "`src`",
    group_shape_fits};
constexpr CheckDef kMaskGroups = {
    "mask_groups_fit",
    "`group_shape` beside `mask` must have one positive entry an axis that divides the dim of `src`, and is that dim "
    "for an axis without a bit",
    mask_groups_fit};
constexpr CheckDef kScalesShape = {
    "scales_shape",
    "`scales` must hold one element for each index (or group) of `src` along the axes that `qtype` and `axis`, or "
    "`mask`, name; other axes may be left out or be 1",
    scales_shape};
constexpr CheckDef kZpsShape = {"zps_shape", "`zps` must hold one element, or have a shape that `scales` may have",
                                zps_shape};

}  // namespace

constexpr OpDef kQuantize = {
    .kind = OpKind::Quantize,
    .name = "Quantize",
    .c_name = "quantize",
    .summary =
        "dst = src / scale + zero point, rounded to the nearest integer (halves to even) and limited to dst's range.",
    .inputs = {{"src", "T1", "real values"}},
    .outputs = {{"dst", "T2", "quantized values"}},
    .attrs = {kQtype, kAxis, kScales, kZps},
    .types = {{"T1", kF32}, {"T2", {Dtype::u8, Dtype::s8, Dtype::f8_e5m2, Dtype::f8_e4m3}}},
    .checks = {kChannelAxis, kScalesCount, kZpsCount, kF8WithoutZps},
    .infer = same_shape,
    .step = StepKind::loop,
};

constexpr OpDef kDequantize = {
    .kind = OpKind::Dequantize,
    .name = "Dequantize",
    .c_name = "dequantize",
    .summary = "dst = (src - zero point) * scale",
    .inputs = {{"src", "T1", "quantized values"}},
    .outputs = {{"dst", "T2", "real values"}},
    .attrs = {kQtype, kAxis, kScales, kZps},
    .types = {{"T1", {Dtype::u8, Dtype::s8, Dtype::f8_e5m2, Dtype::f8_e4m3}}, {"T2", kF32}},
    .checks = {kChannelAxis, kScalesCount, kZpsCount, kF8WithoutZps},
    .infer = same_shape,
    .step = StepKind::loop,
};

constexpr OpDef kDynamicQuantize = {
    .kind = OpKind::DynamicQuantize,
    .name = "DynamicQuantize",
    .c_name = "dynamic_quantize",
    .summary = "Quantize with scales and zero points that arrive as tensors.",
    .inputs = {{"src", "T1", "real values"},
               {"scales", "T1", "factors between real and quantized values"},
               {"zps", "T2", "quantized values of zero; absent means 0", Arity::optional}},
    .outputs = {{"dst", "T3", "quantized values"}},
    .attrs = {kQtype, kAxis, kMask},
    .types = {{"T1", kF32}, {"T2", {Dtype::u8, Dtype::s8, Dtype::s32}}, {"T3", {Dtype::u8, Dtype::s8}, kF8}},
    .checks = {kF8WithoutZpsInput, kChannelAxis, kMaskFits, kScalesShape, kZpsShape},
    .infer = same_shape,
    .step = StepKind::loop,
};

constexpr OpDef kDynamicDequantize = {
    .kind = OpKind::DynamicDequantize,
    .name = "DynamicDequantize",
    .c_name = "dynamic_dequantize",
    .summary = "Dequantize with scales and zero points that arrive as tensors, also for blocks of elements.",
    .inputs = {{"src", "T1", "quantized values"},
               {"scales", "T2", "factors between real and quantized values"},
               {"zps", "T3", "quantized values of zero; absent means 0", Arity::optional}},
    .outputs = {{"dst", "T2", "real values"}},
    .attrs = {kQtypeWithGroups, kAxis,
              optional(Attr::group_shape, AttrType::s64s,
                       "extent of a block on each axis, for qtype per_group or mask"),
              kMask},
    .types = {{"T1", {Dtype::u8, Dtype::s8, Dtype::s4, Dtype::u4}, kF8},
              {"T2", kFloats},
              {"T3", {Dtype::u4, Dtype::s4, Dtype::u8, Dtype::s8, Dtype::s32}}},
    .checks = {kF8WithoutZpsInput, kChannelAxis, kMaskFits, kGroupShape, kMaskGroups, kScalesShape, kZpsShape},
    .infer = same_shape,
    .step = StepKind::loop,
    .documented = documented_zps,
};

}  // namespace partita
