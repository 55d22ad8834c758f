// SPDX-License-Identifier: Apache-2.0
// The table of attributes and problems, family by family; entry: attribute_cases().
#include "tests/ops/attribute_cases.hpp"

#include "src/base/text.hpp"

namespace partita::test {
namespace {

using enum Effect;
using Cases = std::vector<AttributeCase>;

void append(Cases& cases, const Cases& more) { cases.insert(cases.end(), more.begin(), more.end()); }

Cases elementwise_cases() {
  return {
      {"%1 = Clamp(%0: f32[40]) {min=-0.25, max=0.25}", "min", {"-0.1"}},
      {"%1 = Clamp(%0: f32[40]) {min=-0.25, max=0.25}", "max", {"0.1"}},
      {"%1 = Elu(%0: f32[40]) {alpha=0.5}", "alpha", {"2"}},
      {"%1 = GELU(%0: f32[40])", "mode", {"gelu_tanh"}},
      {"%1 = HardSigmoid(%0: f32[40]) {alpha=0.2, beta=0.5}", "alpha", {"0.4"}},
      {"%1 = HardSigmoid(%0: f32[40]) {alpha=0.2, beta=0.5}", "beta", {"0.3"}},
      {"%1 = LeakyReLU(%0: f32[40]) {alpha=0.1}", "alpha", {"0.2"}},
      {"%1 = Pow(%0: f32[40]) {beta=2}", "beta", {"3", "0.5"}},
      {"%1 = SoftPlus(%0: f32[40])", "beta", {"2"}},
      {"%2 = ClampBackward(%0: f32[40], %1: f32[40]) {min=-0.25, max=0.25}", "min", {"-0.1"}},
      {"%2 = ClampBackward(%0: f32[40], %1: f32[40]) {min=-0.25, max=0.25}", "max", {"0.1"}},
      {"%2 = ClampBackward(%0: f32[40], %1: f32[40]) {min=-0.25, max=0.25}",
       "use_dst",
       {"false"},
       nothing,
       "the result lies strictly between the limits exactly where the source does"},
      {"%2 = EluBackward(%0: f32[40], %1: f32[40]) {alpha=0.5}", "alpha", {"2"}},
      {"%2 = EluBackward(%0: f32[40], %1: f32[40]) {alpha=0.5}", "use_dst", {"false"}},
      {"%2 = GELUBackward(%0: f32[40], %1: f32[40])", "mode", {"gelu_tanh"}},
      {"%2 = HardSigmoidBackward(%0: f32[40], %1: f32[40]) {alpha=0.2, beta=0.5}", "alpha", {"0.4"}},
      {"%2 = HardSigmoidBackward(%0: f32[40], %1: f32[40]) {alpha=0.2, beta=0.5}", "beta", {"1.05"}},
      {"%2 = ReLUBackward(%0: f32[40], %1: f32[40])",
       "use_dst",
       {"false"},
       nothing,
       "the result is above 0 exactly where the source is"},
      {"%2 = SigmoidBackward(%0: f32[40], %1: f32[40])", "use_dst", {"false"}},
      {"%2 = SoftPlusBackward(%0: f32[40], %1: f32[40])", "beta", {"2"}},
      {"%2 = SqrtBackward(%0: f32[40], %1: f32[40])", "use_dst", {"false"}},
      {"%2 = TanhBackward(%0: f32[40], %1: f32[40])", "use_dst", {"false"}},
  };
}

Cases broadcast_cases() {
  Cases cases = {
      {"%2: boolean = GreaterEqual(%0: f32[2,3], %1: f32[3])", "auto_broadcast", {"none"}, refusal},
      {"%3: f32 = Select(%0: boolean[2,3], %1: f32[2,3], %2: f32[3])", "auto_broadcast", {"none"}, refusal},
  };
  for (const char* name : {"Add", "Divide", "Maximum", "Minimum", "Multiply", "SquaredDifference", "Subtract"})
    cases.push_back({str("%2 = ", name, "(%0: f32[2,3], %1: f32[3])"), "auto_broadcast", {"none"}, refusal});
  return cases;
}

Cases channel_cases() {
  const std::string inference =
      "%5 = BatchNormInference(%0: f32[2,3,4,3], %1: f32[3], %2: f32[3], %3: f32[3], %4: f32[3]) {epsilon=0.01}";
  const std::string training =
      "%5, %6, %7, %8, %9 = BatchNormForwardTraining(%0: f32[2,3,4,3], %1: f32[3], %2: f32[3], %3: f32[3], %4: f32[3]) "
      "{epsilon=0.01}";
  const std::string backward =
      "%5, %6, %7 = BatchNormTrainingBackward(%0: f32[2,3,4,3], %1: f32[2,3,4,3], %2: f32[3], %3: f32[3], %4: f32[3]) "
      "{epsilon=0.01}";
  return {
      {"%2 = BiasAdd(%0: f32[2,3,4,3], %1: f32[3])", "data_format", {"NCX"}},
      {"%1 = BiasAddBackward(%0: f32[2,3,4,3])", "data_format", {"NCX"}},
      {"%2 = PReLU(%0: f32[2,3,4,3], %1: f32[3])", "data_format", {"NCX"}},
      {"%2 = PReLU(%0: f32[2,3,4,3], %1: f32[3]) {data_format=NCX}", "per_channel_broadcast", {"false"}},
      {"%3, %4 = PReLUBackward(%0: f32[2,3,4,3], %1: f32[3], %2: f32[2,3,4,3])", "data_format", {"NCX"}},
      {inference, "epsilon", {"1"}},
      {inference, "data_format", {"NCX"}},
      {training, "epsilon", {"1"}},
      {training, "momentum", {"0.9"}},
      {training, "data_format", {"NCX"}},
      {backward, "epsilon", {"1"}},
      {backward, "data_format", {"NCX"}},
  };
}

Cases normalisation_cases() {
  const std::string plain = "{keep_stats=false, use_affine=false}";
  const std::string layer = "%1 = LayerNorm(%0: f32[3,4,5]) " + plain;
  const std::string layer_backward =
      "%5, %6, %7 = LayerNormBackward(%0: f32[3,4,5], %1: f32[3,4,5], %2: f32[3,4], %3: f32[3,4], %4: f32[5])";
  const std::string group = "%1 = GroupNorm(%0: f32[2,4,3,4]) {groups=2, keep_stats=false, use_affine=false}";
  return {
      {"%1 = LayerNorm(%0: f32[3,4,5]) {use_affine=false}", "keep_stats", {"false"}, refusal},
      {"%3 = LayerNorm(%0: f32[3,4,5], %1: f32[5], %2: f32[5]) {keep_stats=false}", "use_affine", {"false"}},
      {layer, "begin_norm_axis", {"1", "-3"}},
      {layer, "epsilon", {"1"}},
      {layer_backward, "begin_norm_axis", {"1"}, refusal},
      {layer_backward, "use_affine", {"false"}},
      {layer_backward, "epsilon", {"1"}},
      {"%1 = RMSNorm(%0: f32[3,4,5])", "begin_norm_axis", {"1", "-3"}},
      {"%1 = RMSNorm(%0: f32[3,4,5])", "epsilon", {"1"}},
      {"%1 = GroupNorm(%0: f32[2,4,3,4]) {groups=2, use_affine=false}", "keep_stats", {"false"}, refusal},
      {"%3 = GroupNorm(%0: f32[2,4,3,4], %1: f32[4], %2: f32[4]) {groups=2, keep_stats=false}",
       "use_affine",
       {"false"}},
      {group, "groups", {"4", "1"}},
      {group, "epsilon", {"1"}},
      {group, "data_format", {"NCX"}},
      {"%1 = SoftMax(%0: f32[3,3,3])", "axis", {"0", "2"}},
      {"%1 = SoftMax(%0: f32[3,3,3])", "mode", {"inf_as_zero"}},
      {"%1 = LogSoftmax(%0: f32[3,3,3])", "axis", {"0", "1"}},
      {"%2 = SoftMaxBackward(%0: f32[3,3,3], %1: f32[3,3,3])", "axis", {"0", "2"}},
      {"%2 = LogSoftmaxBackward(%0: f32[3,3,3], %1: f32[3,3,3])", "axis", {"0", "1"}},
  };
}

/// One spatial axis of `wide` cells, two channels, channel-last; `narrow` windows for the backward operators.
struct Windows {
  int wide, kernel, stride, begin, end, narrow;
};

std::string pool(std::string_view name, const Windows& w) {
  const bool average = name.starts_with("Avg");
  const std::string wide = str("f32[1,", w.wide, ",2]"), narrow = str("f32[1,", w.narrow, ",2]");
  std::string text = str("%2 = ", name, "(", name == "AvgPoolBackward" ? "%0: " + narrow : "%0: " + wide);
  if (name == "MaxPoolBackward") text += ", %1: " + narrow;
  text +=
      str(") {kernel=[", w.kernel, "], strides=[", w.stride, "], pads_begin=[", w.begin, "], pads_end=[", w.end, "]");
  if (average) text += ", exclude_pad=false";
  if (name == "AvgPoolBackward") text += str(", src_shape=[1,", w.wide, ",2]");
  return text + "}";
}

/// Where channels and cells are four each, both data formats fit.
std::string square_pool(std::string_view name) {
  std::string text = pool(name, {4, 3, 1, 1, 1, 4});
  for (size_t at = text.find("4,2]"); at != text.npos; at = text.find("4,2]")) text.replace(at, 4, "4,4]");
  return text;
}

Cases pool_cases() {
  Cases cases;
  for (const std::string name : {"AvgPool", "MaxPool", "AvgPoolBackward", "MaxPoolBackward"}) {
    const bool backward = name.ends_with("Backward");
    append(cases, {{pool(name, {4, 1, 2, 0, 0, 2}), "strides", {"[3]"}},
                   {pool(name, {5, 3, 2, 0, 0, 2}), "pads_begin", {"[1]"}},
                   {pool(name, {5, 3, 2, 0, 0, 2}), "pads_end", {"[2]"}, backward ? refusal : shapes},
                   {pool(name, {5, 2, 2, 0, 0, 2}), "kernel", {"[3]"}},
                   {pool(name, {5, 4, 1, 0, 3, 5}), "auto_pad", {"SAME_UPPER", "SAME_LOWER"}},
                   {pool(name, {5, 4, 1, 0, 3, 5}), "auto_pad", {"VALID"}, backward ? refusal : shapes},
                   {square_pool(name), "data_format", {"NCX"}}});
    if (name.starts_with("Avg")) cases.push_back({pool(name, {5, 3, 2, 1, 1, 3}), "exclude_pad", {"true"}});
    if (name.starts_with("Max")) cases.push_back({pool(name, {5, 2, 2, 0, 0, 2}), "dilations", {"[2]"}});
    if (!backward)
      for (const char* rule : {"ceil", "ceil_inside"})
        cases.push_back({pool(name, {4, 3, 2, 0, 0, 0}), "rounding_type", {rule}, shapes});
    if (backward) cases.push_back({pool(name, {4, 3, 2, 0, 0, 2}), "rounding_type", {"floor"}, refusal});
    if (!name.starts_with("Avg")) continue;
    // The second window ends in the cell behind the padding.
    const std::string up = pool(name, {4, 3, 2, 0, 0, backward ? 2 : 0});
    const std::string rounded = backward ? up : up.substr(0, up.size() - 1) + ", rounding_type=ceil}";
    append(cases, {{rounded, "exclude_overhang", {"true"}}, {rounded, "divisor_override", {"2", "-5"}}});
  }
  cases.push_back({pool("AvgPoolBackward", {4, 2, 2, 0, 0, 2}), "src_shape", {"[1,5,2]"}, shapes});
  const std::string indices = "%2 = MaxPoolIndicesBackward(%0: f32[1,3,2], %1: s64[1,3,2]) {src_shape=[1,5,2]}";
  append(cases,
         {{"%1 = AdaptiveAvgPool(%0: f32[1,5,2]) {sizes=[3]}", "sizes", {"[4]"}, shapes},
          {"%1 = AdaptiveAvgPool(%0: f32[1,5,4]) {sizes=[4]}", "data_format", {"NCX"}, shapes},
          {"%1 = AdaptiveAvgPoolBackward(%0: f32[1,3,2]) {src_shape=[1,5,2]}", "src_shape", {"[1,6,2]"}, shapes},
          {"%1 = AdaptiveAvgPoolBackward(%0: f32[1,3,3]) {src_shape=[1,4,3]}", "data_format", {"NCX"}, refusal},
          {"%1 = AdaptiveAvgPoolBackward(%0: f32[3,4,2]) {src_shape=[6,5,2]}", "spatial_axes", {"2"}, refusal},
          {indices, "src_shape", {"[1,6,2]"}, shapes},
          {indices, "index_base", {"tensor"}},
          {"%2 = MaxPoolIndicesBackward(%0: f32[1,4,4], %1: s64[1,4,4]) {src_shape=[1,4,4]}", "data_format", {"NCX"}},
          {"%2 = MaxPoolIndicesBackward(%0: f32[3,4,2], %1: s64[3,4,2]) {src_shape=[6,5,2]}",
           "spatial_axes",
           {"2"},
           refusal},
          {"%2, %3: s64 = MaxPool(%0: f32[2,4,4]) {kernel=[3], strides=[1], pads_begin=[1], pads_end=[1]}",
           "index_base",
           {"tensor"}}});
  return cases;
}

/// The six convolutions with four channels on either side, channel-last, the filter with the spatial axis in front.
std::string conv(std::string_view name, const Windows& w) {
  const std::string wide = str("f32[1,", w.wide, ",4]"), narrow = str("f32[1,", w.narrow, ",4]");
  const std::string filter = str("[", w.kernel, ",4,4]");
  const bool transposed = name.starts_with("ConvTranspose"), weights = name.ends_with("Weights");
  const bool from_wide = name == "Convolution" || name == "ConvTransposeBackwardData";
  std::string text = str("%2 = ", name, "(%0: ", from_wide || (weights && !transposed) ? wide : narrow, ", %1: ");
  text += weights ? (transposed ? wide : narrow) : "f32" + filter;
  text += str(") {strides=[", w.stride, "], pads_begin=[", w.begin, "], pads_end=[", w.end, "], dilations=[1]");
  if (weights) text += ", weights_shape=" + filter;
  if (name == "ConvolutionBackwardData") text += str(", dst_shape=[1,", w.wide, ",4]");
  return text + "}";
}

Cases conv_cases() {
  Cases cases;
  for (const std::string name : {"Convolution", "ConvTransposeBackwardData", "ConvolutionBackwardData",
                                 "ConvolutionBackwardWeights", "ConvTransposeBackwardWeights"}) {
    // The forward operators answer with another shape where the gradients, whose shapes are given, refuse.
    const Effect other = name == "Convolution" || name == "ConvTransposeBackwardData" ? shapes : refusal;
    const std::string other_filter = name.starts_with("ConvTranspose") ? "IOX" : "OIX";
    append(cases, {{conv(name, {4, 1, 2, 0, 0, 2}), "strides", {"[3]"}},
                   {conv(name, {5, 3, 2, 0, 0, 2}), "pads_begin", {"[1]"}},
                   {conv(name, {5, 3, 2, 0, 0, 2}), "pads_end", {"[2]"}, other},
                   {conv(name, {5, 2, 2, 0, 0, 2}), "dilations", {"[2]"}},
                   {conv(name, {5, 4, 1, 0, 3, 5}), "auto_pad", {"SAME_UPPER", "SAME_LOWER"}},
                   {conv(name, {5, 4, 1, 0, 3, 5}), "auto_pad", {"VALID"}, other},
                   {conv(name, {5, 3, 2, 0, 0, 2}), "groups", {"2"}, refusal},
                   {conv(name, {4, 3, 1, 1, 1, 4}), "data_format", {"NCX"}},
                   {conv(name, {5, 4, 1, 0, 0, 2}), "weights_format", {other_filter}}});
    if (name.ends_with("Weights"))
      cases.push_back({conv(name, {5, 2, 2, 0, 0, 2}), "weights_shape", {"[3,4,4]"}, shapes});
  }
  append(cases, {{conv("ConvolutionBackwardData", {4, 2, 2, 0, 0, 2}), "dst_shape", {"[1,5,4]"}, shapes},
                 {conv("ConvolutionBackwardData", {5, 2, 2, 0, 0, 2}),
                  "output_padding",
                  {"[1]"},
                  nothing,
                  "the shape of the result, which it would change, is given"}});
  const std::string name = "ConvTranspose", usual = conv(name, {0, 2, 2, 0, 0, 3});
  append(cases, {{usual, "strides", {"[1]"}, shapes},
                 {usual, "pads_begin", {"[1]"}, shapes},
                 {usual, "pads_end", {"[1]"}, shapes},
                 {usual, "dilations", {"[2]"}, shapes},
                 {usual, "output_padding", {"[1]"}, shapes},
                 {usual, "groups", {"2"}, shapes},
                 {conv(name, {0, 4, 1, 0, 3, 5}), "auto_pad", {"SAME_UPPER", "SAME_LOWER"}},
                 {conv(name, {0, 4, 1, 0, 3, 5}), "auto_pad", {"VALID"}, shapes},
                 {conv(name, {0, 3, 1, 1, 1, 4}), "data_format", {"NCX"}},
                 {conv(name, {0, 4, 1, 0, 0, 2}), "weights_format", {"IOX"}}});
  return cases;
}

Cases reduction_cases() {
  Cases cases;
  for (const char* name : {"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"}) {
    const std::string text = str("%1 = ", name, "(%0: f32[3,3]) {axes=[0]}");
    append(cases, {{text, "axes", {"[1]"}}, {text, "keep_dims", {"true"}, shapes}});
  }
  return cases;
}

Cases resample_cases() {
  const std::string forward = "%2 = Interpolate(%0: f32[1,5,2]) {mode=linear, ";
  const std::string backward = "%2 = InterpolateBackward(%0: f32[1,5,2], %1: f32[1,8,2]) {mode=linear, ";
  Cases cases;
  for (const std::string& text : {forward, backward}) {
    const Effect other = text == forward ? shapes : refusal;
    append(cases, {{text + "sizes=[8]}", "mode", {"nearest"}},
                   {text + "sizes=[8]}", "mode", {"bilinear", "trilinear"}, nothing, "three names of one mode"},
                   {text + "sizes=[8]}", "coordinate_transformation_mode", {"align_corners"}},
                   {text + "sizes=[8]}", "sizes", {"[7]"}, other},
                   {text + "scales=[1.6]}", "scales", {"[2]"}, other},
                   {text + "sizes=[8]}", "data_format", {"NCX"}, other}});
  }
  return cases;
}

Cases quantization_cases() {
  const std::string quantize = "%1: s8 = Quantize(%0: f32[3,3]) ", dequantize = "%1: f32 = Dequantize(%0: u8[3,3]) ";
  const std::string dynamic = "%2: s8 = DynamicQuantize(%0: f32[3,3], %1: ";
  Cases cases;
  for (const std::string& text : {quantize, dequantize})
    append(cases, {{text + "{scales=[0.01]}", "qtype", {"per_channel"}, refusal},
                   {text + "{qtype=per_channel, scales=[0.01,0.02,0.05]}", "axis", {"0"}},
                   {text + "{scales=[0.01]}", "scales", {"[0.02]"}},
                   {text + "{scales=[0.01]}", "zps", {"[7]"}}});
  append(cases,
         {{dynamic + "f32[1])", "qtype", {"per_channel"}, refusal},
          {dynamic + "f32[3]) {qtype=per_channel}", "axis", {"0"}},
          {"%2: f32 = DynamicDequantize(%0: s8[3,3], %1: f32[1])", "qtype", {"per_channel", "per_group"}, refusal},
          {"%2: f32 = DynamicDequantize(%0: s8[3,3], %1: f32[3]) {qtype=per_channel}", "axis", {"0"}},
          {dynamic + "f32[3]) {mask=2}", "mask", {"1"}},
          {"%2: f32 = DynamicDequantize(%0: s8[3,3], %1: f32[3]) {mask=2}", "mask", {"1"}},
          {"%2: f32 = DynamicDequantize(%0: s8[4,4], %1: f32[2,2]) {qtype=per_group, group_shape=[2,2]}",
           "group_shape",
           {"[4,1]"},
           refusal}});
  return cases;
}

Cases other_cases() {
  const std::string product = "%2 = MatMul(%0: f32[3,3], %1: f32[3,3])";
  return {
      {product, "transpose_a", {"true"}},
      {product, "transpose_b", {"true"}},
      {product,
       "accumulation_mode",
       {"relaxed", "any", "f32", "s32", "f16"},
       nothing,
       "it allows less precise sums; ours are always f32"},
      {"%2 = Concat(%0: f32[2,2], %1: f32[2,2]) {axis=0}", "axis", {"1"}, shapes},
      {"%1 = StaticReshape(%0: f32[2,3]) {shape=[3,2], special_zero=false}", "shape", {"[6]", "[1,6]"}, shapes},
      {"%1 = StaticReshape(%0: f32[2,3]) {shape=[0,3], special_zero=true}", "special_zero", {"false"}, refusal},
      {"%1 = StaticTranspose(%0: f32[3,3]) {order=[0,1]}", "order", {"[1,0]"}},
      {"%1: s32 = GenIndex(%0: f32[3,3]) {axis=0}", "axis", {"1"}},
  };
}

}  // namespace

std::vector<AttributeCase> attribute_cases() {
  Cases cases;
  for (const auto family : {elementwise_cases, broadcast_cases, channel_cases, normalisation_cases, pool_cases,
                            conv_cases, reduction_cases, resample_cases, quantization_cases, other_cases})
    append(cases, family());
  return cases;
}

}  // namespace partita::test
