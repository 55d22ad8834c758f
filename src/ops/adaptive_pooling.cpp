// SPDX-License-Identifier: Apache-2.0
// Adaptive average pooling: the number of windows is given, they divide the axis as evenly as whole cells allow.
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/pool_shapes.hpp"

namespace partita {
namespace {

bool sizes_positive(const OpView& v) { return entries_at_least(v, Attr::sizes, 1); }

Status no_empty_windows(const ShapeContext& c, const Dims& src, const Dims& dst) {
  for (int i = 0; i < src.size(); ++i)
    if (src[i] == 0 && dst[i] > 0)
      return c.wrong(str("[", text_of(dst), "] windows need cells, found ", text_of(src), " along the spatial axes"));
  return {};
}

Status adaptive_shape(ShapeContext& c) {
  const Dims sizes = c.attrs().dims(Attr::sizes);
  PT_TRY(no_empty_windows(c, pool_spatial(c.attrs(), c.in(0)), sizes));
  return c.set(0, with_pool_spatial(c.attrs(), c.in(0), sizes));
}

/// Any number of windows may have been asked for.
Status fits(ShapeContext& c, const Dims& src) {
  const Dims windows = pool_spatial(c.attrs(), c.in(0)), cells = pool_spatial(c.attrs(), src);
  if (with_pool_spatial(c.attrs(), src, windows) != c.in(0))
    return c.wrong(str(c.input_text(0), ", its batch and channels must be those of [", text_of(src), "]"));
  for (int i = 0; i < cells.size(); ++i)
    if (windows[i] == 0 && cells[i] > 0)
      return c.wrong(str(c.input_text(0), ", there must be a window along each spatial axis of [", text_of(src), "]"));
  return {};
}

Status adaptive_backward_shape(ShapeContext& c) { return gradient_shape(c, fits); }

}  // namespace

constexpr OpDef kAdaptiveAvgPool = {
    .kind = OpKind::AdaptiveAvgPool,
    .name = "AdaptiveAvgPool",
    .c_name = "",
    .summary =
        "Mean of each of a given number of windows; window o of O over I cells is [floor(oI/O), ceil((o+1)I/O)).",
    .inputs = {{"src", "T", "values"}},
    .outputs = {{"dst", "T", "one mean a window"}},
    .attrs = {required(Attr::sizes, AttrType::s64s, "number of windows, one positive integer a spatial axis"),
              kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {kPoolSrcRank,
               {"sizes_positive", "`sizes` must hold numbers from 1 to 2147483647", sizes_positive},
               {"spatial_axes_fit", "`sizes` must have one entry for each of 1 to 3 spatial axes of `src`",
                spatial_axes_fit}},
    .infer = adaptive_shape,
    .step = StepKind::resample,
};

constexpr OpDef kAdaptiveAvgPoolBackward = {
    .kind = OpKind::AdaptiveAvgPoolBackward,
    .name = "AdaptiveAvgPoolBackward",
    .c_name = "",
    .summary = "Gradient of AdaptiveAvgPool: each window's share is added to the cells it covers.",
    .inputs = {{"diff_dst", "T", "gradient of the forward result"},
               {"src_shape", "T1", "shape of diff_src; wins over the attribute", Arity::optional, Attr::src_shape}},
    .outputs = {{"diff_src", "T", "gradient of the forward source"}},
    .attrs = {optional(Attr::src_shape, AttrType::s64s, "full shape of diff_src"), kSpatialAxes, kDataFormat},
    .types = {{"T", kFloats}, {"T1", kS32}},
    .checks = {kPoolDiffDstRank, kSpatialAxesOfDiffDst, kSrcShapeEntries, kSrcShapeGiven<2>},
    .infer = adaptive_backward_shape,
    .step = StepKind::resample,
};

}  // namespace partita
