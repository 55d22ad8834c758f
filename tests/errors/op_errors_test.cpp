// SPDX-License-Identifier: Apache-2.0
// Every way to get an operator wrong, and what is said about it. A rule without a case here fails the last test.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "partita/graph.hpp"
#include "src/base/text.hpp"
#include "src/ir/verify_op.hpp"
#include "tests/support/op_text.hpp"

namespace partita::test {
namespace {

std::string refusal(OpKind kind, const AttrList& attrs, std::string_view inputs, std::string_view outputs) {
  const Result<Attrs> result = verify_op(op_of(kind, attrs, inputs, outputs));
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.status().code(), Code::invalid_graph_op);
  return result.status().text();
}

AttrList plus(AttrList attrs, const AttrList& more) {
  for (const auto& [key, value] : more) {
    std::erase_if(attrs, [key = key](const auto& entry) { return entry.first == key; });
    attrs.emplace_back(key, value);
  }
  return attrs;
}

const AttrList kPool = {{Attr::kernel, Ints{3, 3}},
                        {Attr::strides, Ints{2, 2}},
                        {Attr::pads_begin, Ints{0, 0}},
                        {Attr::pads_end, Ints{0, 0}}};
const AttrList kAvg = plus(kPool, {{Attr::exclude_pad, true}});
const AttrList kConv = {{Attr::dilations, Ints{1, 1}},
                        {Attr::strides, Ints{2, 2}},
                        {Attr::pads_begin, Ints{0, 0}},
                        {Attr::pads_end, Ints{0, 0}}};
const AttrList kEpsilon = {{Attr::epsilon, 0.001f}};
const AttrValue kPerChannel = std::string("per_channel"), kPerGroup = std::string("per_group");

TEST(op_errors, name_the_ports_when_their_number_is_wrong) {
  EXPECT_EQ(refusal(OpKind::MatMul, {}, "f32[2,3]", "f32"),
            "MatMul must have 2 to 3 inputs (`src`, `weights`, [`bias`]), found 1");
  EXPECT_EQ(refusal(OpKind::ReLU, {}, "f32[2] f32[2]", "f32"), "ReLU must have 1 input (`src`), found 2");
  EXPECT_EQ(refusal(OpKind::ReLU, {}, "f32[2]", ""), "ReLU must have 1 output (`dst`), found 0");
  EXPECT_EQ(refusal(OpKind::End, {}, "f32[2]", "f32"), "End must have 0 outputs, found 1");
  EXPECT_EQ(refusal(OpKind::Concat, {{Attr::axis, int64_t{0}}}, "", "f32"),
            "Concat must have 1 to 64 inputs (`src_i` ..), found 0");
}

TEST(op_errors, name_the_types_that_would_fit) {
  EXPECT_EQ(refusal(OpKind::ReLU, {}, "s8[2]", "s8"), "`src` must be of type f16, bf16, f32, found s8");
  EXPECT_EQ(refusal(OpKind::MatMul, {}, "f32[2,3] bf16[3,2]", "f32"),
            "`weights` must have the type of `src` (f32), found bf16");
  EXPECT_EQ(refusal(OpKind::Concat, {{Attr::axis, int64_t{0}}}, "f32[2] f32[2] f16[2]", "f32"),
            "`src_i` (input 2) must have the type of `src_i` (input 0) (f32), found f16");
  EXPECT_EQ(refusal(OpKind::GreaterEqual, {}, "f32[2] f32[2]", "f32"), "`dst` must be of type boolean, found f32");
  EXPECT_EQ(refusal(OpKind::ReLU, {}, "undef[2]", "f32"), "`src` must be of type f16, bf16, f32, found undef");
}

TEST(op_errors, say_what_an_attribute_must_be) {
  EXPECT_EQ(refusal(OpKind::Elu, {}, "f32[2]", "f32"),
            "attribute `alpha` (f32: size of the negative limit, not negative) is required, found none");
  EXPECT_EQ(refusal(OpKind::Elu, {{Attr::alpha, int64_t{1}}}, "f32[2]", "f32"),
            "`alpha` must be of type f32, found s64 1");
  EXPECT_EQ(refusal(OpKind::Add, {{Attr::auto_broadcast, std::string("nunpy")}}, "f32[2] f32[2]", "f32"),
            "`auto_broadcast` must be one of none, numpy, found `nunpy`, did you mean `numpy`?");
  EXPECT_EQ(refusal(OpKind::MaxPool, plus(kPool, {{Attr::rounding_type, std::string("round")}}), "f32[1,2,3,4]", "f32"),
            "`rounding_type` must be one of floor, ceil, ceil_inside, found `round`");
  EXPECT_EQ(refusal(OpKind::MaxPool, plus(kPool, {{Attr::kernel, Ints(13, 1)}}), "f32", "f32"),
            "`kernel` must have at most 12 entries, found 13");
}

TEST(op_errors, results_must_not_overwrite_their_own_elements) {
  op relu = op_of(OpKind::ReLU, {}, "f32[2,3]", "f32[2,3]");
  relu.inputs[0].strides = {0, 1};
  EXPECT_TRUE(verify_op(relu).ok()) << "inputs may repeat elements";
  relu.outputs[0].strides = {0, 1};
  relu.outputs[0].id = 5;
  EXPECT_EQ(verify_op(relu).status().text(),
            "`dst` (tensor 5, f32[2,3]): strides [0,1] put elements [1,0] and [0,0] in one place, along axis 0; only "
            "inputs may repeat elements");
  relu.outputs[0].strides = {1, 1};
  EXPECT_NE(verify_op(relu).status().text().find("along axes 0, 1"), std::string::npos);
  relu.kind = OpKind::Wildcard;
  EXPECT_TRUE(verify_op(relu).ok()) << "its results may be views of its inputs";
}

TEST(op_errors, host_scalars_have_no_axes_and_one_of_three_types) {
  op dropout = op_of(OpKind::Dropout, {}, "f32[2] s64[] s64[] f32[]", "f32[2]");
  for (int i = 1; i < 4; ++i) dropout.inputs[static_cast<size_t>(i)].property = Property::host_scalar;
  EXPECT_TRUE(verify_op(dropout).ok()) << verify_op(dropout).status().text();
  dropout.inputs[3].dims = dropout.inputs[3].strides = {1};
  dropout.inputs[3].id = 9;
  EXPECT_EQ(verify_op(dropout).status().text(),
            "`probability` (tensor 9, f32[1]): a host scalar must have rank 0, found f32[1]");
  op add = op_of(OpKind::Add, {}, "bf16[2] bf16[]", "bf16[2]");
  add.inputs[1].property = Property::host_scalar;
  add.inputs[1].id = 3;
  EXPECT_EQ(verify_op(add).status().text(),
            "`src_1` (tensor 3, bf16[]): a host scalar must be of type s32, s64 or f32, found bf16");
}

TEST(op_errors, inputs_that_stand_for_lists_have_one_axis) {
  int seen = 0;
  for (const OpDef* def : all_ops())
    for (size_t i = 0; i < def->inputs.size(); ++i) {
      if (def->inputs[i].value_of == Attr{0}) continue;
      ++seen;
      op o(0, def->kind);
      o.inputs.assign(i + 1, logical_tensor(0, Dtype::f32));
      o.inputs[i] = logical_tensor(0, Dtype::s32, Dims{1, 3});
      Attrs attrs;
      const Status s = run_checks(*def, OpView(o, attrs), Code::invalid_graph_op);
      EXPECT_EQ(s.text(), str("`", def->inputs[i].name, "` must be 1-D, found s32[1,3]")) << def->name;
    }
  EXPECT_GT(seen, 10);
  EXPECT_EQ(refusal(OpKind::ReduceSum, {}, "f32[2,3] s32[1,2]", "f32"), "`axes` must be 1-D, found s32[1,2]");
}

TEST(op_errors, suggest_the_attribute_that_was_meant) {
  EXPECT_EQ(refusal(OpKind::AvgPoolBackward, plus(kAvg, {{Attr::dst_shape, Ints{1, 2, 3, 4}}}), "f32[1,2,3,4]", "f32"),
            "AvgPoolBackward has no attribute `dst_shape`, it has strides, pads_begin, pads_end, exclude_pad, kernel, "
            "auto_pad, src_shape, data_format, rounding_type, exclude_overhang, divisor_override, did you mean "
            "`src_shape`?");
  EXPECT_EQ(refusal(OpKind::Abs, {{Attr::axis, int64_t{0}}}, "f32[2]", "f32"),
            "Abs has no attribute `axis`, it has none");
  EXPECT_EQ(refusal(OpKind::Abs, {{static_cast<Attr>(9999), int64_t{0}}}, "f32[2]", "f32"),
            "Abs has no attribute number 9999");
}

TEST(op_errors, an_unknown_kind_is_named_by_number) {
  EXPECT_EQ(refusal(static_cast<OpKind>(88), {}, "", ""), "no operator has the kind number 88");
}

TEST(op_errors, places_name_id_name_and_kind) {
  op o(7, OpKind::SoftMax, "sm");
  EXPECT_EQ(place_of(o), "op 7 'sm' (SoftMax)");
  o.name.clear();
  EXPECT_EQ(place_of(o), "op 7 (SoftMax)");
}

TEST(op_errors, carry_the_values_found) {
  EXPECT_EQ(refusal(OpKind::SoftMax, {{Attr::axis, int64_t{4}}}, "f32[2,3]", "f32[2,3]"),
            "`axis` must be in [-rank, rank) of `src`: axis=4, src is f32[2,3]");
  EXPECT_EQ(
      refusal(OpKind::AvgPoolBackward, kAvg, "f32[1,2,3,4]", "f32"),
      "`src_shape` must be given as attribute or input, or `diff_src` must have a known shape: src_shape is absent, "
      "diff_src is f32[?]");
  EXPECT_EQ(
      refusal(OpKind::ConvolutionBackwardData, kConv, "f32[1,2,3,4] f32[3,3,5,4]", "f32[?,2,3,4]"),
      "`dst_shape` must be given as attribute or input, or `diff_src` must have a known shape: dst_shape is absent, "
      "diff_src is f32[?,2,3,4]");
  EXPECT_EQ(
      refusal(OpKind::MaxPool, plus(kPool, {{Attr::strides, Ints{2}}}), "f32[1,2,3,4]", "f32"),
      "`kernel`, `strides`, `dilations`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`: "
      "kernel=[3,3], strides=[2], dilations is absent, pads_begin=[0,0], pads_end=[0,0], src is f32[1,2,3,4]");
  EXPECT_EQ(
      refusal(OpKind::GroupNorm, {{Attr::groups, int64_t{3}}, {Attr::keep_stats, false}, {Attr::use_affine, false}},
              "f32[2,5,4]", "f32"),
      "`groups` must be positive and divide the channels of `src` by `data_format`: groups=3, src is f32[2,5,4], "
      "data_format=NXC");
}

TEST(op_errors, an_empty_list_is_not_called_absent) {
  EXPECT_EQ(refusal(OpKind::ReduceSum, {{Attr::axes, Ints{}}}, "f32[2,3]", "f32"),
            "`axes` must be given as attribute or input: axes is empty");
  EXPECT_EQ(refusal(OpKind::ReduceSum, {}, "f32[2,3]", "f32"),
            "`axes` must be given as attribute or input: axes is absent");
  EXPECT_EQ(refusal(OpKind::DynamicDequantize, {{Attr::qtype, kPerGroup}, {Attr::group_shape, Ints{}}},
                    "s8[4,4] f32[2,4]", "f32"),
            "where `qtype` is per_group, `group_shape` must have one positive entry an axis that divides the dim of "
            "`src`: qtype=per_group, group_shape is empty, src is s8[4,4]");
}

/// An operator that breaks exactly the rule `id`.
struct Breach {
  std::string_view id;
  OpKind kind;
  AttrList attrs;
  std::string_view inputs, outputs;
};

const std::vector<Breach>& breaches() {
  static const AttrList kMode = {{Attr::mode, std::string("linear")}};
  static const AttrList kScale = {{Attr::scales, Floats{2}}};
  static const AttrList kLimits = {{Attr::min, 2.0f}, {Attr::max, 1.0f}};
  static const float kNan = std::numeric_limits<float>::quiet_NaN();
  static const std::vector<Breach> list = {
      {"min_up_to_max", OpKind::Clamp, kLimits, "f32[2]", "f32"},
      {"min_up_to_max", OpKind::ClampBackward, plus(kLimits, {{Attr::min, kNan}}), "f32[2] f32[2]", "f32"},
      {"alpha_sign", OpKind::Elu, {{Attr::alpha, -1.0f}}, "f32[2]", "f32"},
      {"alpha_sign", OpKind::EluBackward, {{Attr::alpha, -1.0f}}, "f32[2] f32[2]", "f32"},
      {"gradient_shape", OpKind::AbsBackward, {}, "f32[2] f32[3]", "f32"},
      {"gradient_shape", OpKind::ReLUBackward, {}, "f32[2] f32[2,1]", "f32"},
      {"gradient_shape", OpKind::SoftMaxBackward, {}, "f32[2,3] f32[2,1]", "f32"},
      {"gradient_shape", OpKind::PReLUBackward, {}, "f32[2,3] f32[3] f32[3]", "f32 f32"},
      {"gradient_shape",
       OpKind::LayerNormBackward,
       {{Attr::use_affine, false}},
       "f32[2,3] f32[3] f32[2] f32[2]",
       "f32"},
      {"gradient_shape", OpKind::BatchNormTrainingBackward, kEpsilon, "f32[2,3] f32[3] f32[3] f32[3]", "f32"},
      {"channels_of_src", OpKind::BiasAdd, {}, "f32[2] f32[2]", "f32"},
      {"channels_of_src", OpKind::BatchNormInference, kEpsilon, "f32[2] f32[2] f32[2] f32[2] f32[2]", "f32"},
      {"channels_of_diff_dst", OpKind::BiasAddBackward, {}, "f32[]", "f32"},
      {"bias_length", OpKind::BiasAdd, {}, "f32[2,3] f32[2]", "f32"},
      {"bias_length", OpKind::BiasAdd, {}, "f32[2,?] f32[1,2]", "f32"},
      {"slope_shape", OpKind::PReLU, {}, "f32[2,3,4] f32[3]", "f32"},
      {"slope_shape", OpKind::PReLU, {}, "f32[2,3] f32[5,2,3]", "f32"},
      {"axis_in_range", OpKind::GenIndex, {{Attr::axis, int64_t{2}}}, "f32[2,3]", "s32"},
      {"axis_in_range", OpKind::Concat, {{Attr::axis, int64_t{-3}}}, "f32[2,3]", "f32"},
      {"axis_in_range", OpKind::LogSoftmaxBackward, {{Attr::axis, int64_t{1}}}, "f32[2] f32[2]", "f32"},
      {"axis_in_range", OpKind::SoftMax, {}, "f32[]", "f32"},
      {"spatial_rank", OpKind::MaxPool, kPool, "f32[1,2,3,4,5,6]", "f32"},
      {"spatial_rank", OpKind::ConvTransposeBackwardData, kConv, "f32[1,2] f32[2,2]", "f32"},
      {"spatial_rank", OpKind::Interpolate, plus(kMode, kScale), "f32[1,2]", "f32"},
      {"pads_sign", OpKind::AvgPool, plus(kAvg, {{Attr::pads_end, Ints{0, -1}}}), "f32[1,2,3,4]", "f32"},
      {"pads_sign", OpKind::Convolution, plus(kConv, {{Attr::pads_begin, Ints{0, 1ll << 31}}}), "f32 f32", "f32"},
      {"steps_sign", OpKind::MaxPool, plus(kPool, {{Attr::kernel, Ints{0, 1}}}), "f32[1,2,3,4]", "f32"},
      {"steps_sign", OpKind::ConvTranspose, plus(kConv, {{Attr::dilations, Ints{1, 0}}}), "f32 f32", "f32"},
      {"groups_sign", OpKind::Convolution, plus(kConv, {{Attr::groups, int64_t{0}}}), "f32 f32", "f32"},
      {"output_padding_sign", OpKind::ConvTranspose, plus(kConv, {{Attr::output_padding, Ints{-1, 0}}}), "f32 f32",
       "f32"},
      {"one_entry_an_axis", OpKind::Convolution, plus(kConv, {{Attr::dilations, Ints{1}}}), "f32 f32", "f32"},
      {"one_entry_an_axis", OpKind::ConvolutionBackwardData, plus(kConv, {{Attr::output_padding, Ints{1}}}), "f32 f32",
       "f32"},
      {"one_entry_an_axis", OpKind::AvgPool, plus(kAvg, {{Attr::pads_end, Ints{1}}}), "f32[1,2,3,4]", "f32"},
      {"one_entry_an_axis", OpKind::Interpolate, plus(kMode, kScale), "f32[1,2,3,4]", "f32"},
      {"weights_shape_entries", OpKind::ConvolutionBackwardWeights, plus(kConv, {{Attr::weights_shape, Ints{1, 2, 3}}}),
       "f32[1,2,3,4] f32", "f32"},
      {"weights_shape_given", OpKind::ConvTransposeBackwardWeights, kConv, "f32 f32", "f32"},
      {"dst_shape_entries", OpKind::ConvolutionBackwardData, plus(kConv, {{Attr::dst_shape, Ints{1, 2, 3, -1}}}),
       "f32 f32", "f32"},
      {"dst_shape_given", OpKind::ConvolutionBackwardData, kConv, "f32 f32", "f32"},
      {"src_shape_entries", OpKind::AvgPoolBackward, plus(kAvg, {{Attr::src_shape, Ints{1, 2, 3}}}), "f32[1,2,3,4]",
       "f32"},
      {"src_shape_given", OpKind::AvgPoolBackward, kAvg, "f32", "f32"},
      {"spatial_rank", OpKind::AvgPoolBackward, plus(kAvg, {{Attr::src_shape, Ints{1}}}), "f32[1]", "f32"},
      {"one_entry_an_axis", OpKind::MaxPool, plus(kPool, {{Attr::kernel, Ints{2}}}), "f32[1,2,3]", "f32"},
      {"divisor_range", OpKind::AvgPool, plus(kAvg, {{Attr::divisor_override, int64_t{1} << 31}}), "f32[1,2,3,4]",
       "f32"},
      {"spatial_axes_fit",
       OpKind::MaxPoolIndicesBackward,
       {{Attr::spatial_axes, int64_t{1}}},
       "f32[1,2,3,4] s64[1,2,3,4]",
       "f32[1,2,6,8]"},
      {"spatial_axes_fit", OpKind::AdaptiveAvgPool, {{Attr::sizes, Ints{2}}}, "f32[1,2,3,4]", "f32"},
      {"sizes_positive", OpKind::AdaptiveAvgPool, {{Attr::sizes, Ints{0, 1}}}, "f32[1,2,3,4]", "f32"},
      {"src_shape_given", OpKind::AdaptiveAvgPoolBackward, {}, "f32[1,2,3,4]", "f32"},
      {"statistics_type", OpKind::BatchNormInference, kEpsilon, "f32 bf16 bf16 bf16 bf16", "f32"},
      {"statistics_type", OpKind::LayerNorm, {{Attr::use_affine, false}}, "f16", "f16 bf16 bf16"},
      {"gamma_type", OpKind::RMSNorm, {}, "f16 bf16", "f16"},
      {"channel_vectors", OpKind::BatchNormInference, kEpsilon, "f32[2,3] f32[3] f32[3] f32[2] f32[3]", "f32"},
      {"channel_vectors",
       OpKind::GroupNorm,
       {{Attr::groups, int64_t{1}}, {Attr::keep_stats, false}},
       "f32[2,3] f32[3] f32[1]",
       "f32"},
      {"affine_pair", OpKind::BatchNormForwardTraining, kEpsilon, "f32 f32 f32 f32", "f32 f32 f32 f32 f32"},
      {"gradient_pair", OpKind::BatchNormTrainingBackward, kEpsilon, "f32 f32 f32 f32 f32", "f32 f32"},
      {"epsilon_sign", OpKind::RMSNorm, {{Attr::epsilon, -1.0f}}, "f32", "f32"},
      {"epsilon_sign", OpKind::BatchNormInference, {{Attr::epsilon, kNan}}, "f32 f32 f32 f32 f32", "f32"},
      {"momentum_sign", OpKind::BatchNormForwardTraining, plus(kEpsilon, {{Attr::momentum, -0.1f}}), "f32 f32 f32",
       "f32 f32 f32 f32 f32"},
      {"statistics_outputs", OpKind::LayerNorm, {{Attr::use_affine, false}}, "f32", "f32"},
      {"statistics_outputs",
       OpKind::GroupNorm,
       {{Attr::groups, int64_t{1}}, {Attr::keep_stats, false}},
       "f32 f32 f32",
       "f32 f32"},
      {"affine_inputs", OpKind::LayerNorm, {{Attr::keep_stats, false}}, "f32", "f32"},
      {"begin_norm_axis_in_range", OpKind::RMSNorm, {{Attr::begin_norm_axis, int64_t{2}}}, "f32[2,3]", "f32"},
      {"affine_shape", OpKind::LayerNorm, {{Attr::keep_stats, false}}, "f32[2,3] f32[3] f32[2]", "f32"},
      {"affine_gradients", OpKind::LayerNormBackward, {}, "f32 f32 f32 f32", "f32 f32 f32"},
      {"statistics_shape",
       OpKind::LayerNormBackward,
       {{Attr::use_affine, false}},
       "f32[2,3] f32[2,3] f32[3] f32[2]",
       "f32"},
      {"gamma_shape", OpKind::RMSNorm, {}, "f32[2,3] f32[2]", "f32"},
      {"groups_fit",
       OpKind::GroupNorm,
       {{Attr::groups, int64_t{0}}, {Attr::keep_stats, false}, {Attr::use_affine, false}},
       "f32",
       "f32"},
      {"dst_type", OpKind::SoftMax, {}, "bf16", "f16"},
      {"dst_type", OpKind::MatMul, {}, "f32 f32", "bf16"},
      {"diff_src_type", OpKind::SoftMaxBackward, {}, "f32 f32", "bf16"},
      {"matrix_rank", OpKind::MatMul, {}, "f32[2] f32[]", "f32"},
      {"axes_given", OpKind::ReduceSum, {}, "f32[2]", "f32"},
      {"axes_valid", OpKind::ReduceMax, {{Attr::axes, Ints{0, -2}}}, "f32[2,3]", "f32"},
      {"axes_valid", OpKind::ReduceMin, {{Attr::axes, Ints{2}}}, "f32[2,3]", "f32"},
      {"one_target", OpKind::Interpolate, kMode, "f32[1,2,3]", "f32"},
      {"one_target", OpKind::Interpolate, plus(plus(kMode, kScale), {{Attr::sizes, Ints{2}}}), "f32[1,2,3]", "f32"},
      {"one_target", OpKind::InterpolateBackward, plus(kMode, kScale), "f32 f32 s32", "f32"},
      {"targets_positive", OpKind::Interpolate, plus(kMode, {{Attr::scales, Floats{kNan}}}), "f32[1,2,3]", "f32"},
      {"targets_positive", OpKind::Interpolate, plus(kMode, {{Attr::sizes, Ints{0}}}), "f32[1,2,3]", "f32"},
      {"gradient_rank", OpKind::InterpolateBackward, plus(kMode, kScale), "f32[1,2,3] f32[1,2]", "f32"},
      {"quantized_axis_in_range", OpKind::Quantize, plus(kScale, {{Attr::qtype, kPerChannel}}), "f32[2]", "s8"},
      {"scales_count", OpKind::Dequantize, {{Attr::scales, Floats{1, 2}}}, "s8[2,2]", "f32"},
      {"scales_count",
       OpKind::Dequantize,
       {{Attr::scales, Floats{1, 2}}, {Attr::qtype, kPerChannel}},
       "s8[2,3]",
       "f32"},
      {"scales_count", OpKind::Dequantize, {{Attr::scales, Floats{}}, {Attr::qtype, kPerChannel}}, "s8[2,3]", "f32"},
      {"zps_count", OpKind::Quantize, plus(kScale, {{Attr::zps, Ints{1, 2}}}), "f32[2]", "s8"},
      {"f8_without_zps", OpKind::Quantize, plus(kScale, {{Attr::zps, Ints{1}}}), "f32[2]", "f8_e4m3"},
      {"f8_without_zps_input", OpKind::DynamicQuantize, {}, "f32[2] f32[1] s8[1]", "f8_e4m3"},
      {"f8_without_zps_input", OpKind::DynamicDequantize, {}, "f8_e5m2[2] f32[1] s32[1]", "f32"},
      {"group_shape_fits", OpKind::DynamicDequantize, {{Attr::qtype, kPerGroup}}, "s8[4,4] f32[2,4]", "f32"},
      {"group_shape_fits",
       OpKind::DynamicDequantize,
       {{Attr::qtype, kPerGroup}, {Attr::group_shape, Ints{3, 1}}},
       "s8[4,4] f32",
       "f32"},
      {"scales_shape", OpKind::DynamicQuantize, {}, "f32[2,3] f32[3]", "s8"},
      {"scales_shape", OpKind::DynamicQuantize, {{Attr::qtype, kPerChannel}}, "f32[2,3] f32[2]", "s8"},
      {"scales_shape",
       OpKind::DynamicDequantize,
       {{Attr::qtype, kPerGroup}, {Attr::group_shape, Ints{2, 1}}},
       "s8[4,4] f32[4,4]",
       "f32"},
      {"scales_shape", OpKind::DynamicQuantize, {{Attr::mask, int64_t{3}}}, "f32[2,3,4] f32[2,4]", "s8"},
      {"mask_fits", OpKind::DynamicQuantize, {{Attr::mask, int64_t{4}}}, "f32[2,3] f32[2]", "s8"},
      {"mask_fits", OpKind::DynamicQuantize, {{Attr::mask, int64_t{-1}}}, "f32[2,3] f32[2]", "s8"},
      {"mask_fits",
       OpKind::DynamicDequantize,
       {{Attr::mask, int64_t{2}}, {Attr::qtype, kPerChannel}},
       "s8[2,3] f32[3]",
       "f32"},
      {"mask_fits",
       OpKind::DynamicDequantize,
       {{Attr::mask, int64_t{1}}, {Attr::axis, int64_t{0}}},
       "s8[2,3] f32[2]",
       "f32"},
      {"mask_groups_fit",
       OpKind::DynamicDequantize,
       {{Attr::mask, int64_t{2}}, {Attr::group_shape, Ints{1, 2}}},
       "s8[4,4] f32[2]",
       "f32"},
      {"zps_shape", OpKind::DynamicQuantize, {}, "f32[2,3] f32[1] s8[3]", "s8"},
      {"zps_shape",
       OpKind::DynamicDequantize,
       {{Attr::qtype, kPerGroup}, {Attr::group_shape, Ints{2, 1}}},
       "s8[4,4] f32[2,4] s8[4]",
       "f32"},
      {"cast_types", OpKind::TypeCast, {}, "f32", "f32"},
      {"cast_types", OpKind::TypeCast, {}, "bf16", "f16"},
      {"order_permutes", OpKind::StaticTranspose, {{Attr::order, Ints{0, -2}}}, "f32[2,3]", "f32"},
      {"order_permutes", OpKind::StaticTranspose, {{Attr::order, Ints{0}}}, "f32[2,3]", "f32"},
      {"shape_entries", OpKind::StaticReshape, {{Attr::shape, Ints{-1, -1}}, {Attr::special_zero, true}}, "f32", "f32"},
      {"shape_entries", OpKind::StaticReshape, {{Attr::shape, Ints{-2}}, {Attr::special_zero, true}}, "f32", "f32"},
      {"scalars", OpKind::Dropout, {}, "f32[2] s64[9223372036854775807,9] s64[] f32[]", "f32"},
      {"scalars", OpKind::Dropout, {}, "f32[2] s64[] s64[2] f32[]", "f32"},
  };
  return list;
}

TEST(op_errors, each_rule_refuses_with_its_own_sentence) {
  for (const Breach& b : breaches()) {
    SCOPED_TRACE(str(b.id, " of ", name_of(b.kind), "(", b.inputs, ")"));
    const OpDef& def = op_def(b.kind);
    const auto* check = std::ranges::find(def.checks, b.id, &CheckDef::id);
    ASSERT_NE(check, def.checks.end());
    const std::string text = refusal(b.kind, b.attrs, b.inputs, b.outputs);
    EXPECT_EQ(text.substr(0, check->sentence.size() + 2), str(check->sentence, ": ")) << text;
  }
}

TEST(op_errors, data_types_that_there_are_not_are_refused) {
  for (int number : {-1, 17, 32 + static_cast<int>(Dtype::f32), 65536}) {
    const auto type = static_cast<Dtype>(number);
    op o(1, OpKind::ReLU);
    o.add_input(logical_tensor(0, type)).add_output(logical_tensor(1, type));
    graph g;
    const Status status = g.add_op(o);
    EXPECT_EQ(status.code(), Code::invalid_graph_op);
    EXPECT_NE(status.text().find(str("`src` has data type number ", number)), std::string::npos) << status.text();
  }
}

TEST(op_errors, every_rule_has_a_case) {
  std::set<std::string_view> covered;
  for (const Breach& b : breaches()) covered.insert(b.id);
  for (const OpDef* def : all_ops()) {
    for (const CheckDef& check : def->checks)
      EXPECT_TRUE(covered.contains(check.id)) << check.id << " of " << def->name;
  }
}

}  // namespace
}  // namespace partita::test
