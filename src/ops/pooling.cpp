// SPDX-License-Identifier: Apache-2.0
// Average and maximum pooling, forward and backward.
#include <cstdlib>
#include <limits>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/pool_shapes.hpp"

namespace partita {
namespace {

constexpr AttrDef kKernel = required(Attr::kernel, AttrType::s64s, "window size, one positive integer a spatial axis");
constexpr AttrDef kExcludePad =
    required(Attr::exclude_pad, AttrType::boolean, "divide by the number of real cells (true) or of all cells (false)");
constexpr AttrDef kPoolDilations =
    optional(Attr::dilations, AttrType::s64s, "step between the cells of a window; absent means 1 on every axis");
constexpr std::string_view kRoundingText =
    "what becomes of a last window that does not fit: dropped (floor), kept (ceil), or kept unless it starts behind "
    "the "
    "source and the padding before it (ceil_inside, an extension); with ceil a given result of ceil_inside is "
    "accepted, "
    "too";
constexpr AttrDef kRounding = choice(Attr::rounding_type, "floor", {"floor", "ceil", "ceil_inside"}, kRoundingText);
constexpr AttrDef kRoundingOfGradient =
    extension(choice(Attr::rounding_type, "", {"floor", "ceil", "ceil_inside"},
                     "as in the forward operator; absent means that any of them may have made diff_dst"));
constexpr AttrDef kExcludeOverhang = extension(
    optional(Attr::exclude_overhang, AttrType::boolean,
             "with exclude_pad false: true does not count cells behind the padding, as rounding up makes them"));
constexpr AttrDef kDivisorOverride = extension(
    optional(Attr::divisor_override, AttrType::s64, "what every window is divided by; absent or 0 means its cells"));
constexpr AttrDef kIndexBase = extension(choice(
    Attr::index_base, "", {"plane", "tensor"},
    "what indices count, from 0: cells of the plane (plane; the default), or elements of the source in row-major "
    "order of its axes (tensor)"));

constexpr DtypeSet kIndexTypes{Dtype::s32, Dtype::s64};

bool divisor_in_range(const OpView& v) {
  const int64_t divisor = v.attrs().i64_or(Attr::divisor_override, 0);
  return std::abs(divisor) <= std::numeric_limits<int32_t>::max();
}
constexpr CheckDef kDivisorRange = {
    "divisor_range", "`divisor_override` must be a number from -2147483647 to 2147483647", divisor_in_range};

constexpr CheckDef kAvgSteps = {"steps_sign", "`kernel` and `strides` must hold numbers from 1 to 2147483647",
                                positive<Attr::kernel, Attr::strides>};
constexpr CheckDef kMaxSteps = {"steps_sign",
                                "`kernel`, `strides` and `dilations` must hold numbers from 1 to 2147483647",
                                positive<Attr::kernel, Attr::strides, Attr::dilations>};
constexpr CheckDef kAvgLists = {
    "one_entry_an_axis", "`kernel`, `strides`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`",
    pool_lists_fit};
constexpr CheckDef kAvgListsOfDiffDst = {
    "one_entry_an_axis",
    "`kernel`, `strides`, `pads_begin` and `pads_end` must have one entry a spatial axis of `diff_dst`",
    pool_lists_fit};
constexpr CheckDef kMaxLists = {
    "one_entry_an_axis",
    "`kernel`, `strides`, `dilations`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`",
    pool_lists_fit};

/// The rules by which the number of windows may have been found, the one that is asked for first.
std::vector<Rounding> roundings_of(const Attrs& attrs) {
  if (attrs.is(Attr::rounding_type, "floor")) return {Rounding::floor};
  if (attrs.is(Attr::rounding_type, "ceil")) return {Rounding::ceil, Rounding::ceil_inside};
  if (attrs.is(Attr::rounding_type, "ceil_inside")) return {Rounding::ceil_inside};
  return {Rounding::floor, Rounding::ceil, Rounding::ceil_inside};
}

Status pool_shape(ShapeContext& c) {
  const Dims slid_over = pool_spatial(c.attrs(), c.in(0));
  PT_ASSIGN(const Windows w, resolve_windows(c, c.attrs().dims(Attr::kernel), slid_over));
  std::optional<Dims> dst;
  for (Rounding rounding : roundings_of(c.attrs())) {
    Dims counts = window_counts(slid_over, w, rounding);
    PT_TRY(check_counts(c, counts, slid_over, w));
    const Dims made = with_pool_spatial(c.attrs(), c.in(0), counts);
    if (!dst || c.agrees(0, made)) dst = made;
    if (c.agrees(0, made)) break;
  }
  PT_TRY(c.set(0, *dst));
  return c.outputs() > 1 ? c.set(1, *dst) : Status{};
}

/// Where the backward operator does not say how the forward one rounded, diff_dst shows it.
Status check_gradient(ShapeContext& c, const Dims& src, int diff_dst) {
  const Dims slid_over = pool_spatial(c.attrs(), src);
  PT_ASSIGN(const Windows w, resolve_windows(c, c.attrs().dims(Attr::kernel), slid_over));
  const std::vector<Rounding> roundings = roundings_of(c.attrs());
  for (Rounding rounding : roundings) {
    Dims counts = window_counts(slid_over, w, rounding);
    for (int i = 0; i < counts.size(); ++i) counts[i] = slid_over[i] == 0 ? std::max<int64_t>(0, counts[i]) : counts[i];
    if (c.in(diff_dst) == with_pool_spatial(c.attrs(), src, counts)) return {};
  }
  Dims first = window_counts(slid_over, w, roundings[0]);
  PT_TRY(check_counts(c, first, slid_over, w));
  return c.wrong(str(c.input_text(diff_dst), ", pooling [", text_of(src), "] makes [",
                     text_of(with_pool_spatial(c.attrs(), src, first)), "]"));
}

Status avg_pool_backward_shape(ShapeContext& c) {
  return gradient_shape(c, [](ShapeContext& context, const Dims& src) { return check_gradient(context, src, 0); });
}

Status max_pool_backward_shape(ShapeContext& c) {
  if (c.rank(0) != c.rank(1)) return c.wrong(str(c.input_text(1), ", it must have the rank of ", c.input_text(0)));
  PT_TRY(check_gradient(c, c.in(0), 1));
  return c.set(0, c.in(0));
}

/// Any windows may have been asked for.
Status fits_indices(ShapeContext& c, const Dims& src) {
  if (c.in(0) != c.in(1)) return c.wrong(str(c.input_text(1), ", it must have the shape of ", c.input_text(0)));
  if (with_pool_spatial(c.attrs(), src, pool_spatial(c.attrs(), c.in(0))) != c.in(0))
    return c.wrong(str(c.input_text(0), ", its batch and channels must be those of [", text_of(src), "]"));
  return {};
}

Status max_pool_indices_backward_shape(ShapeContext& c) { return gradient_shape(c, fits_indices); }

}  // namespace

constexpr OpDef kAvgPool = {
    .kind = OpKind::AvgPool,
    .name = "AvgPool",
    .c_name = "avg_pool",
    .summary = "Mean of each window of the source.",
    .inputs = {{"src", "T", "values"}},
    .outputs = {{"dst", "T", "one mean a window"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kExcludePad, kKernel, kAutoPad, kRounding, kDataFormat, kExcludeOverhang,
              kDivisorOverride},
    .types = {{"T", kFloats}},
    .checks = {kPoolSrcRank, kPadsSign, kAvgSteps, kAvgLists, kDivisorRange},
    .infer = pool_shape,
    .step = StepKind::pool_forward,
};

constexpr OpDef kAvgPoolBackward = {
    .kind = OpKind::AvgPoolBackward,
    .name = "AvgPoolBackward",
    .c_name = "avg_pool_backward",
    .summary = "Gradient of AvgPool: each window's share is added to the cells it covers.",
    .inputs = {{"diff_dst", "T", "gradient of the forward result"},
               {"src_shape", "T1", "shape of diff_src; wins over the attribute", Arity::optional, Attr::src_shape}},
    .outputs = {{"diff_src", "T", "gradient of the forward source"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kExcludePad, kKernel, kAutoPad,
              optional(Attr::src_shape, AttrType::s64s, "full shape of diff_src, batch and channels included"),
              kDataFormat, kRoundingOfGradient, kExcludeOverhang, kDivisorOverride},
    .types = {{"T", kFloats}, {"T1", kS32}},
    .checks = {kPoolDiffDstRank, kPadsSign, kAvgSteps, kAvgListsOfDiffDst, kDivisorRange, kSrcShapeEntries,
               kSrcShapeGiven<2>},
    .infer = avg_pool_backward_shape,
    .step = StepKind::pool_backward,
};

constexpr OpDef kMaxPool = {
    .kind = OpKind::MaxPool,
    .name = "MaxPool",
    .c_name = "max_pool",
    .summary = "Greatest value of each window of the source.",
    .inputs = {{"src", "T", "values"}},
    .outputs = {{"dst", "T", "one value a window"},
                {.name = "indices",
                 .type = "T_indices",
                 .text = "place of each window's first greatest cell (NaN is the greatest), -1 where it has none",
                 .arity = Arity::optional,
                 .extension = true}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kKernel, kPoolDilations, kAutoPad, kRounding, kDataFormat, kIndexBase},
    .types = {{"T", kFloats}, {"T_indices", kIndexTypes}},
    .checks = {kPoolSrcRank, kPadsSign, kMaxSteps, kMaxLists},
    .infer = pool_shape,
    .step = StepKind::pool_forward,
};

constexpr OpDef kMaxPoolBackward = {
    .kind = OpKind::MaxPoolBackward,
    .name = "MaxPoolBackward",
    .c_name = "max_pool_backward",
    .summary = "Gradient of MaxPool: each window's gradient goes to its first greatest cell.",
    .inputs = {{"src", "T", "source of the forward operator"}, {"diff_dst", "T", "gradient of its result"}},
    .outputs = {{"diff_src", "T", "gradient of the source"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kKernel, kPoolDilations, kAutoPad, kDataFormat, kRoundingOfGradient},
    .types = {{"T", kFloats}},
    .checks = {kPoolSrcRank, kPadsSign, kMaxSteps, kMaxLists},
    .infer = max_pool_backward_shape,
    .step = StepKind::max_pool_backward,
};

constexpr OpDef kMaxPoolIndicesBackward = {
    .kind = OpKind::MaxPoolIndicesBackward,
    .name = "MaxPoolIndicesBackward",
    .c_name = "",
    .summary = "Gradient of MaxPool from its indices: each window's gradient goes to the cell its index names.",
    .inputs = {{"diff_dst", "T", "gradient of the forward result"},
               {"indices", "T_indices",
                "of the forward operator: of a cell of the same batch item and channel, or -1; execution fails with "
                "others"},
               {"src_shape", "T1", "shape of diff_src; wins over the attribute", Arity::optional, Attr::src_shape}},
    .outputs = {{"diff_src", "T", "gradient of the forward source"}},
    .attrs = {kIndexBase, optional(Attr::src_shape, AttrType::s64s, "full shape of diff_src"), kSpatialAxes,
              kDataFormat},
    .types = {{"T", kFloats}, {"T_indices", kIndexTypes}, {"T1", kS32}},
    .checks = {kPoolDiffDstRank, kSpatialAxesOfDiffDst, kSrcShapeEntries, kSrcShapeGiven<3>},
    .infer = max_pool_indices_backward_shape,
    .step = StepKind::max_pool_indices_backward,
};

}  // namespace partita
