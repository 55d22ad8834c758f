// SPDX-License-Identifier: Apache-2.0
// Average and maximum pooling, forward and backward.
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/axes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"
#include "src/ops/windows.hpp"

namespace partita {
namespace {

constexpr AttrDef kKernel = required(Attr::kernel, AttrType::s64s, "window size, one positive integer a spatial axis");
constexpr AttrDef kExcludePad =
    required(Attr::exclude_pad, AttrType::boolean, "divide by the number of real cells (true) or of all cells (false)");
constexpr AttrDef kPoolDilations =
    optional(Attr::dilations, AttrType::s64s, "step between the cells of a window; absent means 1 on every axis");
constexpr AttrDef kRounding =
    choice(Attr::rounding_type, "floor", {"floor", "ceil"},
           "what becomes of a last window that does not fit: dropped (floor) or kept (ceil); with ceil a given result "
           "without windows that start behind the source is accepted too");

constexpr CheckDef kAvgSteps = {"steps_sign", "`kernel` and `strides` must hold numbers from 1 to 2147483647",
                                positive<Attr::kernel, Attr::strides>};
constexpr CheckDef kMaxSteps = {"steps_sign",
                                "`kernel`, `strides` and `dilations` must hold numbers from 1 to 2147483647",
                                positive<Attr::kernel, Attr::strides, Attr::dilations>};
constexpr CheckDef kAvgLists = {
    "one_entry_an_axis", "`kernel`, `strides`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`",
    one_entry_an_axis};
constexpr CheckDef kAvgListsOfDiffDst = {
    "one_entry_an_axis",
    "`kernel`, `strides`, `pads_begin` and `pads_end` must have one entry a spatial axis of `diff_dst`",
    one_entry_an_axis};
constexpr CheckDef kMaxLists = {
    "one_entry_an_axis",
    "`kernel`, `strides`, `dilations`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`",
    one_entry_an_axis};

Dims with_spatial(const ShapeContext& c, const Dims& like, const Dims& spatial) {
  return data_dims(c.attrs(), like[0], like[channel_axis(c.attrs(), like.size())], spatial);
}

Status pool_shape(ShapeContext& c) {
  const Dims& src = c.in(0);
  const Dims slid_over = spatial_dims(c.attrs(), src);
  PT_ASSIGN(const Windows w, resolve_windows(c, c.attrs().dims(Attr::kernel), slid_over));
  const bool ceil = c.attrs().is(Attr::rounding_type, "ceil");
  Dims counts = window_counts(slid_over, w, ceil ? Rounding::ceil : Rounding::floor);
  PT_TRY(check_counts(c, counts, slid_over, w));
  const Dims dst = with_spatial(c, src, counts);
  if (ceil && !c.agrees(0, dst)) {
    Dims inside = window_counts(slid_over, w, Rounding::ceil_inside);
    PT_TRY(check_counts(c, inside, slid_over, w));
    const Dims other = with_spatial(c, src, inside);
    if (c.agrees(0, other)) return c.set(0, other);
  }
  return c.set(0, dst);
}

/// The backward operators do not say how the forward one rounded: diff_dst shows it.
Status check_gradient(ShapeContext& c, const Dims& src, int diff_dst) {
  const Dims slid_over = spatial_dims(c.attrs(), src);
  PT_ASSIGN(const Windows w, resolve_windows(c, c.attrs().dims(Attr::kernel), slid_over));
  Dims floor = window_counts(slid_over, w, Rounding::floor);
  for (Rounding rounding : {Rounding::floor, Rounding::ceil, Rounding::ceil_inside}) {
    Dims counts = window_counts(slid_over, w, rounding);
    for (int i = 0; i < counts.size(); ++i) counts[i] = slid_over[i] == 0 ? std::max<int64_t>(0, counts[i]) : counts[i];
    if (c.in(diff_dst) == with_spatial(c, src, counts)) return {};
  }
  PT_TRY(check_counts(c, floor, slid_over, w));
  return c.wrong(
      str(c.input_text(diff_dst), ", pooling [", text_of(src), "] makes [", text_of(with_spatial(c, src, floor)), "]"));
}

Status avg_pool_backward_shape(ShapeContext& c) {
  if (const std::optional<Dims> src = wanted_shape(c, Attr::src_shape)) {
    if (src->size() != c.rank(0)) return c.wrong(str(c.output_text(0), ", it must have the rank of ", c.input_text(0)));
    PT_TRY(check_gradient(c, *src, 0));
    return c.set(0, *src);
  }
  // The shape arrives at execution; batch and channels are known before.
  return c.set(0, with_spatial(c, c.in(0), Dims(c.rank(0) - 2, kUnknownDim)));
}

Status max_pool_backward_shape(ShapeContext& c) {
  PT_TRY(check_gradient(c, c.in(0), 1));
  return c.set(0, c.in(0));
}

}  // namespace

constexpr OpDef kAvgPool = {
    .kind = OpKind::AvgPool,
    .name = "AvgPool",
    .c_name = "avg_pool",
    .summary = "Mean of each window of the source.",
    .inputs = {{"src", "T", "values"}},
    .outputs = {{"dst", "T", "one mean a window"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kExcludePad, kKernel, kAutoPad, kRounding, kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {kSrcRank, kPadsSign, kAvgSteps, kAvgLists},
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
              kDataFormat},
    .types = {{"T", kFloats}, {"T1", kS32}},
    .checks = {kDiffDstRank,
               kPadsSign,
               kAvgSteps,
               kAvgListsOfDiffDst,
               {"src_shape_entries", "`src_shape` must have one entry, not negative, an axis of `diff_dst`",
                shape_entries_fit<Attr::src_shape>},
               {"src_shape_given",
                "`src_shape` must be given as attribute or input, or `diff_src` must have a known shape",
                shape_is_given<Attr::src_shape, 2>}},
    .infer = avg_pool_backward_shape,
    .step = StepKind::pool_backward,
};

constexpr OpDef kMaxPool = {
    .kind = OpKind::MaxPool,
    .name = "MaxPool",
    .c_name = "max_pool",
    .summary = "Greatest value of each window of the source.",
    .inputs = {{"src", "T", "values"}},
    .outputs = {{"dst", "T", "one value a window"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kKernel, kPoolDilations, kAutoPad, kRounding, kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {kSrcRank, kPadsSign, kMaxSteps, kMaxLists},
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
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kKernel, kPoolDilations, kAutoPad, kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {kSrcRank, kPadsSign, kMaxSteps, kMaxLists},
    .infer = max_pool_backward_shape,
    .step = StepKind::max_pool_backward,
};

}  // namespace partita
