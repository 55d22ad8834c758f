// SPDX-License-Identifier: Apache-2.0
// Normalisation within one sample: layer norm with its gradient, RMS norm, group norm.
#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

constexpr AttrDef kBeginNormAxis =
    number(Attr::begin_norm_axis, -1,
           "first of the axes that are normalised together, up to the last; negative counts from the end");
constexpr AttrDef kKeepStats = flag(Attr::keep_stats, true, "true: mean and variance are outputs");
constexpr AttrDef kUseAffine = flag(Attr::use_affine, true, "true: gamma and beta are inputs and are applied");

Dims leading(const Dims& dims, int64_t axis) {
  return Dims(std::span<const int64_t>(dims.begin(), static_cast<size_t>(*normal_axis(axis, dims.size()))));
}
Dims trailing(const Dims& dims, int64_t axis) {
  const auto from = static_cast<size_t>(*normal_axis(axis, dims.size()));
  return Dims(std::span<const int64_t>(dims.begin() + from, static_cast<size_t>(dims.size()) - from));
}

/// One entry for each normalised position: in their shape, or 1-D.
bool covers(const OpView& v, int i) {
  if (i >= v.inputs() || !v.in(i).shape_known() || !v.in(0).shape_known()) return true;
  const Dims normalised = trailing(v.in(0).dims, v.attrs().i64(Attr::begin_norm_axis));
  const std::optional<int64_t> count = checked_elements(normalised);
  return v.in(i).dims == normalised || (count && v.in(i).dims == Dims{*count});
}

template <int first, int last>
bool affine_shapes(const OpView& v) {
  for (int i = first; i <= last; ++i) {
    if (!covers(v, i)) return false;
  }
  return true;
}

bool statistics_shapes(const OpView& v) {
  if (!v.in(0).shape_known()) return true;
  const Dims dims = leading(v.in(0).dims, v.attrs().i64(Attr::begin_norm_axis));
  const logical_tensor wanted(0, v.in_type(2), dims);
  return may_agree(v.in(2), wanted) && may_agree(v.in(3), wanted);
}

bool statistics_outputs(const OpView& v) {
  return v.outputs() == 3 || (v.outputs() == 1 && !v.attrs().flag(Attr::keep_stats));
}
bool affine_inputs(const OpView& v) {
  return v.inputs() == 3 || (v.inputs() == 1 && !v.attrs().flag(Attr::use_affine));
}
bool affine_gradients(const OpView& v) {
  if (v.attrs().flag(Attr::use_affine)) return v.outputs() == 3 && v.inputs() >= 5;
  return v.outputs() != 2;
}
bool same_shapes(const OpView& v) { return may_agree(v.in(0), v.in(1)); }

bool documented_gradients(const OpView& v) { return v.in_type(2) != Dtype::bf16 || v.in_type(0) == Dtype::bf16; }
bool documented_rms(const OpView& v) { return v.in_type(1) != Dtype::f16 || v.in_type(0) == Dtype::f16; }

bool groups_fit(const OpView& v) {
  const int64_t groups = v.attrs().i64(Attr::groups), channels = known_channels(v);
  return groups >= 1 && (channels == kUnknownDim || channels % groups == 0);
}
bool has_channels(const OpView& v) {
  const int rank = known_rank(v, 0);
  return rank < 0 || rank >= 2;
}
bool channel_vectors(const OpView& v) {
  return is_vector(v, 1, known_channels(v)) && is_vector(v, 2, known_channels(v));
}

constexpr CheckDef kAxis = {"begin_norm_axis_in_range", "`begin_norm_axis` must be in [-rank, rank) of `src`",
                            axis_in_range<Attr::begin_norm_axis>};
constexpr CheckDef kType = {"statistics_type",
                            "`gamma`, `beta`, `mean` and `variance` may be bf16 only where `src` is bf16",
                            statistics_type_fits, true};
constexpr CheckDef kStatisticsOutputs = {
    "statistics_outputs",
    "`mean` and `variance` must be outputs where `keep_stats` is true, and both or none where it is false",
    statistics_outputs};
constexpr CheckDef kAffineInputs = {
    "affine_inputs", "`gamma` and `beta` must be inputs where `use_affine` is true, and both or none where it is false",
    affine_inputs};
constexpr std::string_view kAffineShapeText =
    "`gamma` and `beta` must have one entry for each position of `src` from `begin_norm_axis` on";

Status layer_norm_shapes(ShapeContext& c) {
  PT_TRY(c.set(0, c.in(0)));
  for (int o = 1; o < c.outputs(); ++o) PT_TRY(c.set(o, leading(c.in(0), c.attrs().i64(Attr::begin_norm_axis))));
  return {};
}

Status layer_norm_backward_shapes(ShapeContext& c) {
  PT_TRY(c.set(0, c.in(0)));
  const Dims affine = c.inputs() > 4 ? c.in(4) : trailing(c.in(0), c.attrs().i64(Attr::begin_norm_axis));
  for (int o = 1; o < c.outputs(); ++o) PT_TRY(c.set(o, affine));
  return {};
}

Status group_norm_shapes(ShapeContext& c) {
  PT_TRY(c.set(0, c.in(0)));
  for (int o = 1; o < c.outputs(); ++o) PT_TRY(c.set(o, {c.in(0)[0], c.attrs().i64(Attr::groups)}));
  return {};
}

}  // namespace

constexpr OpDef kLayerNorm = {
    .kind = OpKind::LayerNorm,
    .name = "LayerNorm",
    .c_name = "layer_norm",
    .summary = "Subtracts the mean over the last axes and divides by the deviation, then applies gamma and beta.",
    .inputs = {{"src", "T1", "values"},
               {"gamma", "T2", "factors of the normalised positions", Arity::optional},
               {"beta", "T2", "terms of the normalised positions", Arity::optional}},
    .outputs = {{"dst", "T1", "normalised values"},
                {"mean", "T2", "means, without the normalised axes", Arity::optional},
                {"variance", "T2", "variances, without the normalised axes", Arity::optional}},
    .attrs = {kKeepStats, kBeginNormAxis, kUseAffine, epsilon(1e-5f)},
    .types = {{"T1", kFloats}, {"T2", kF32OrBf16}},
    .checks = {kType,
               kStatisticsOutputs,
               kAffineInputs,
               kAxis,
               {"affine_shape", kAffineShapeText, affine_shapes<1, 2>},
               kEpsilonSign},
    .infer = layer_norm_shapes,
    .step = StepKind::layer_norm,
};

constexpr OpDef kLayerNormBackward = {
    .kind = OpKind::LayerNormBackward,
    .name = "LayerNormBackward",
    .c_name = "layer_norm_backward",
    .summary = "Gradients of LayerNorm for its source and its affine tensors.",
    .inputs = {{"src", "T1", "source of the forward operator"},
               {"diff_dst", "T1", "gradient of its result"},
               {"mean", "T2", "means of the forward operator"},
               {"variance", "T2", "its variances"},
               {"gamma", "T2", "its factors", Arity::optional},
               {"beta", "T2", "its terms; not read", Arity::optional}},
    .outputs = {{"diff_src", "T1", "gradient of the source"},
                {"diff_gamma", "T2", "gradient of gamma", Arity::optional},
                {"diff_beta", "T2", "gradient of beta", Arity::optional}},
    .attrs = {kBeginNormAxis,
              flag(Attr::use_affine, true, "true: gamma is an input, its and beta's gradients are outputs"),
              epsilon(1e-5f)},
    .types = {{"T1", kFloats}, {"T2", kF32OrBf16}},
    .checks =
        {{"affine_gradients",
          "where `use_affine` is true, `gamma` must be an input and `diff_gamma` and `diff_beta` outputs; where it is "
          "false, both gradients or none",
          affine_gradients},
         kAxis,
         {"gradient_shape", "`diff_dst` must have the shape of `src`", same_shapes},
         {"statistics_shape", "`mean` and `variance` must have the dims of `src` before `begin_norm_axis`",
          statistics_shapes},
         {"affine_shape", kAffineShapeText, affine_shapes<4, 5>},
         kEpsilonSign},
    .infer = layer_norm_backward_shapes,
    .step = StepKind::layer_norm_backward,
    .documented = documented_gradients,
};

constexpr OpDef kRMSNorm = {
    .kind = OpKind::RMSNorm,
    .name = "RMSNorm",
    .c_name = "rms_norm",
    .summary = "Divides by the root of the mean square over the last axes, then multiplies by gamma.",
    .inputs = {{"src", "T1", "values"}, {"gamma", "T2", "factors of the normalised positions", Arity::optional}},
    .outputs = {{"dst", "T1", "normalised values"}},
    .attrs = {kBeginNormAxis, epsilon(1e-5f)},
    .types = {{"T1", kFloats}, {"T2", kFloats}},
    .checks = {{"gamma_type", "`gamma` may be bf16 only where `src` is bf16", statistics_type_fits, true},
               kAxis,
               {"gamma_shape", "`gamma` must have one entry for each position of `src` from `begin_norm_axis` on",
                affine_shapes<1, 1>},
               kEpsilonSign},
    .infer = layer_norm_shapes,
    .step = StepKind::layer_norm,
    .documented = documented_rms,
};

constexpr OpDef kGroupNorm = {
    .kind = OpKind::GroupNorm,
    .name = "GroupNorm",
    .c_name = "group_norm",
    .summary = "Normalises groups of channels within each sample, then applies gamma and beta a channel.",
    .inputs = {{"src", "T1", "values"},
               {"gamma", "T2", "factor of each channel", Arity::optional},
               {"beta", "T2", "term of each channel", Arity::optional}},
    .outputs = {{"dst", "T1", "normalised values"},
                {"mean", "T2", "means, [batch, groups]", Arity::optional},
                {"variance", "T2", "variances, [batch, groups]", Arity::optional}},
    .attrs = {required(Attr::groups, AttrType::s64, "parts that channels are split into; divides their number"),
              kKeepStats, kUseAffine, epsilon(1e-5f), kDataFormat},
    .types = {{"T1", kFloats}, {"T2", kF32OrBf16}},
    .checks = {kType,
               kStatisticsOutputs,
               kAffineInputs,
               {"channels_of_src", "`src` must have rank 2 or more", has_channels},
               {"groups_fit", "`groups` must be positive and divide the channels of `src` by `data_format`",
                groups_fit},
               {"channel_vectors", "`gamma` and `beta` must be 1-D with one entry a channel of `src` by `data_format`",
                channel_vectors},
               kEpsilonSign},
    .infer = group_norm_shapes,
    .step = StepKind::group_norm,
};

}  // namespace partita
