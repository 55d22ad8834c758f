// SPDX-License-Identifier: Apache-2.0
// Interpolate and its gradient.
#include <cmath>

#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

/// Index of the optional sizes input.
template <int sizes_input>
bool one_target(const OpView& v) {
  const bool sizes = v.inputs() > sizes_input || v.attrs().has(Attr::sizes);
  return sizes != v.attrs().has(Attr::scales);
}

bool rank_fits(const OpView& v) {
  const int rank = known_rank(v, 0);
  return rank < 0 || (rank >= 3 && rank <= 5);
}

bool one_entry_an_axis(const OpView& v) {
  const int rank = known_rank(v, 0);
  if (rank < 0) return true;
  const auto spatial = static_cast<size_t>(rank - 2);
  if (v.attrs().has(Attr::sizes) && v.attrs().ints(Attr::sizes).size() != spatial) return false;
  return !v.attrs().has(Attr::scales) || v.attrs().floats(Attr::scales).size() == spatial;
}

bool targets_positive(const OpView& v) {
  if (v.attrs().has(Attr::scales)) {
    for (float s : v.attrs().floats(Attr::scales)) {
      if (!(s > 0) || !std::isfinite(s)) return false;
    }
  }
  return entries_at_least(v, Attr::sizes, 1);
}

bool gradient_channels(const OpView& v) {
  const int rank = known_rank(v, 0);
  if (rank < 0 || known_rank(v, 1) < 0) return true;
  return known_rank(v, 1) == rank;
}

/// The forward result's dims; spatial ones are unknown while sizes arrive only at execution.
Result<Dims> forward_dims(const ShapeContext& c) {
  const Attrs& attrs = c.attrs();
  const Dims spatial = spatial_dims(attrs, c.in(0));
  Dims to(spatial.size(), kUnknownDim);
  if (attrs.has(Attr::sizes)) to = attrs.dims(Attr::sizes);
  if (attrs.has(Attr::scales)) {
    for (int i = 0; i < spatial.size(); ++i) {
      const float size = static_cast<float>(spatial[i]) * attrs.floats(Attr::scales)[static_cast<size_t>(i)];
      if (size >= 2147483648.0f || (size < 1 && spatial[i] > 0)) {
        return c.wrong(str("`scales` must leave from 1 to 2147483647 cells on each spatial axis: scales=",
                           text_of(attrs.get(Attr::scales)), ", ", c.input_text(0)));
      }
      to[i] = static_cast<int64_t>(size);
    }
  }
  for (int i = 0; i < spatial.size(); ++i)
    if (spatial[i] == 0 && to[i] > 0)
      return c.wrong(str("[", text_of(to), "] places need cells to take from, found [", text_of(spatial),
                         "] along the spatial axes: ", c.input_text(0)));
  return data_dims(attrs, c.in(0)[0], c.in(0)[channel_axis(attrs, c.rank(0))], to);
}

Status resample_shape(ShapeContext& c) {
  PT_ASSIGN(const Dims dst, forward_dims(c));
  return c.set(0, dst);
}

Status resample_backward_shape(ShapeContext& c) {
  PT_ASSIGN(const Dims dst, forward_dims(c));
  for (int i = 0; i < dst.size(); ++i) {
    if (dst[i] == kUnknownDim || dst[i] == c.in(1)[i]) continue;
    return c.wrong(str(c.input_text(1), ", the forward result of ", c.input_text(0), " is [", text_of(dst), "]"));
  }
  return c.set(0, c.in(0));
}

constexpr AttrDef kMode =
    AttrDef{.key = Attr::mode,
            .type = AttrType::string,
            .need = Need::required,
            .allowed = {"nearest", "linear", "bilinear", "trilinear"},
            .aliases = {},
            .text = "nearest cell, or linear along every spatial axis (linear, bilinear and trilinear mean the same)"};
constexpr AttrDef kTransformation =
    choice(Attr::coordinate_transformation_mode, "half_pixel", {"half_pixel", "align_corners"},
           "cells are points at their centres (half_pixel), or first and last cells lie on each other (align_corners)");
constexpr AttrDef kSizes =
    optional(Attr::sizes, AttrType::s64s, "spatial dims of the forward result; the input of that name wins");
constexpr AttrDef kScales =
    optional(Attr::scales, AttrType::f32s, "factors of the spatial dims; the products are rounded down");

constexpr CheckDef kRank = {"spatial_rank", "`src` must have rank 3, 4 or 5: batch, channels and 1 to 3 spatial axes",
                            rank_fits};
constexpr CheckDef kEntries = {"one_entry_an_axis", "`sizes` or `scales` must have one entry a spatial axis of `src`",
                               one_entry_an_axis};
constexpr CheckDef kPositive = {
    "targets_positive", "`sizes` must hold numbers from 1 to 2147483647, `scales` positive ones", targets_positive};
constexpr std::string_view kOneTarget = "exactly one of `sizes` (attribute or input) and `scales` must be given";

}  // namespace

constexpr OpDef kInterpolate = {
    .kind = OpKind::Interpolate,
    .name = "Interpolate",
    .c_name = "interpolate",
    .summary = "Resizes the spatial axes by the nearest cell or by linear interpolation.",
    .inputs = {{"src", "T1", "values"},
               {"sizes", "T2", "spatial dims of the result; wins over the attribute", Arity::optional, Attr::sizes}},
    .outputs = {{"dst", "T1", "resized values"}},
    .attrs = {kMode, kTransformation, kSizes, kScales, kDataFormat},
    .types = {{"T1", kFloats}, {"T2", kS32}},
    .checks = {kRank, {"one_target", kOneTarget, one_target<1>}, kEntries, kPositive},
    .infer = resample_shape,
    .step = StepKind::resample,
};

constexpr OpDef kInterpolateBackward = {
    .kind = OpKind::InterpolateBackward,
    .name = "InterpolateBackward",
    .c_name = "interpolate_backward",
    .summary = "Gradient of Interpolate: each result cell's gradient is shared by the cells it was made from.",
    .inputs = {{"src", "T1", "source of the forward operator; gives the shape"},
               {"diff_dst", "T1", "gradient of its result"},
               {"sizes", "T2", "spatial dims of the forward result; wins over the attribute", Arity::optional,
                Attr::sizes}},
    .outputs = {{"diff_src", "T1", "gradient of the source"}},
    .attrs = {kMode, kTransformation, kSizes, kScales, kDataFormat},
    .types = {{"T1", kFloats}, {"T2", kS32}},
    .checks = {kRank,
               {"one_target", kOneTarget, one_target<2>},
               kEntries,
               kPositive,
               {"gradient_rank", "`diff_dst` must have the rank of `src`", gradient_channels}},
    .infer = resample_backward_shape,
    .step = StepKind::resample_backward,
};

}  // namespace partita
