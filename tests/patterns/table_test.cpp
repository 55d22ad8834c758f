// SPDX-License-Identifier: Apache-2.0
// Every pattern of the table, and every name that the rule gives: a graph it must claim, and one close to it that it
// must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "passes/claims.hpp"
#include "passes/pattern.hpp"
#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

struct Case {
  const char* pattern;
  const char* matching;
  const char* claimed;  ///< partitions of `matching`
  const char* not_matching;
  const char* left;  ///< partitions of `not_matching`
};

struct Spelling {
  const char* pattern;
  const char* text;
  const char* not_matching;
  const char* left;  ///< partitions of `not_matching`
};

struct Chain {
  const char* group;
  const char* text;
};

/// Attributes that the operators below need.
#define POOL " {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], data_format=NCX}"
#define AVG                                                                                                  \
  " {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, src_shape=[1,2,8,8], " \
  "data_format=NCX}"
#define CONV_BODY \
  "strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX"
#define CONV " {" CONV_BODY "}"
#define DEPTHWISE " {" CONV_BODY ", groups=2}"
#define CONV_DATA " {" CONV_BODY ", dst_shape=[1,2,8,8]}"
#define CONV_CELL " {" CONV_BODY ", dst_shape=[1,2,1,1]}"
#define CONV_WEIGHTS " {" CONV_BODY ", weights_shape=[2,2,1,1]}"
#define NORM " {epsilon=0.1, data_format=NCX}"
#define IMAGE "f32[1,2,8,8]"

const Case kCases[] = {
    {"attention",
     // A causal mask: its positions come from the scores' shape.
     "%2: f32[2,8,8] = MatMul(%0: f32[2,8,4], %1: f32[2,4,8]); %4: f32[2,8,8] = Divide(%2, %3: f32[1]); "
     "%5: s32[2,8,8] = GenIndex(%4) {axis=-2}; %6: s32[2,8,8] = GenIndex(%4) {axis=-1}; "
     "%7: boolean[2,8,8] = GreaterEqual(%5, %6); %9: f32[2,8,8] = Select(%7, %4, %8: f32[1]); "
     "%10: f32[2,8,8] = SoftMax(%9) {axis=-1}; %12: f32[2,8,4] = MatMul(%10, %11: f32[2,8,4])",
     "[attention: 1,2,3,4,5,6,7,8]",
     "%2: f32[2,8,8] = MatMul(%0: f32[2,8,4], %1: f32[2,4,8]); %3: f32[2,8,8] = ReLU(%2); "
     "%5: f32[2,8,4] = MatMul(%3, %4: f32[2,8,4])",
     "[matmul_neighbourhood: 1,2] [single_op: 3]"},
    {"attention_backward",
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; %4: f32[8,8] = Divide(%2, %3: f32[1]); "
     "%6: f32[8,8] = Subtract(%4, %5: f32[8,1]); %7: f32[8,8] = Exp(%6); "
     "%9: f32[8,4] = MatMul(%7, %8: f32[8,4]) {transpose_a=true}; "
     "%11: f32[8,8] = MatMul(%8, %10: f32[8,4]) {transpose_b=true}; %20: f32[8,4] = Multiply(%8, %21: f32[8,4]); "
     "%12: f32[8,1] = ReduceSum(%20) {axes=[1], keep_dims=true}; %13: f32[8,8] = Subtract(%11, %12); "
     "%14: f32[8,8] = Multiply(%7, %13); %15: f32[8,8] = Divide(%14, %3); %16: f32[8,4] = MatMul(%15, %1); "
     "%17: f32[8,4] = MatMul(%15, %0) {transpose_a=true}",
     "[attention_backward: 1,2,3,4,5,6,7,8,9,10,11,12,13]",
     // The gradient of the queries alone, and of something that is no exponential.
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; %7: f32[8,8] = Abs(%2); "
     "%11: f32[8,8] = MatMul(%8: f32[8,4], %10: f32[8,4]) {transpose_b=true}; %14: f32[8,8] = Multiply(%7, %11); "
     "%16: f32[8,4] = MatMul(%14, %1)",
     "[matmul_neighbourhood: 1,2,3,4] [single_op: 5]"},
    {"attention_backward_softmax",
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; "
     "%4: f32[8,8] = SoftMaxBackward(%2, %3: f32[8,8]); %6: f32[8,8] = Multiply(%4, %5: f32[1]); "
     "%8: f32[8,4] = MatMul(%6, %7: f32[8,4]); %10: f32[8,4] = MatMul(%6, %9: f32[8,4]) {transpose_a=true}; "
     "%11: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     "[attention_backward_softmax: 1,2,3,4,5,6]",
     // The product is the softmax's result, not its gradient.
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; "
     "%4: f32[8,8] = SoftMaxBackward(%3: f32[8,8], %2); %8: f32[8,4] = MatMul(%4, %7: f32[8,4])",
     "[matmul_neighbourhood: 1,2] [single_op: 3]"},
    {"gated_mlp",
     "%2: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[4,8]); %4: f32[4,8] = MatMul(%0, %3: f32[4,8]); "
     "%5: f32[4,8] = Sigmoid(%4); %6: f32[4,8] = Multiply(%4, %5); %7: f32[4,8] = Multiply(%2, %6); "
     "%9: f32[4,4] = MatMul(%7, %8: f32[8,4])",
     "[gated_mlp: 1,2,3,4,5,6]",
     // The products read different sources.
     "%2: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[4,8]); %4: f32[4,8] = MatMul(%10: f32[4,4], %3: f32[4,8]); "
     "%7: f32[4,8] = Multiply(%2, %4); %9: f32[4,4] = MatMul(%7, %8: f32[8,4])",
     "[matmul_neighbourhood: 1,2,3] [single_op: 4]"},
    {"squeeze_excite",
     "%1: f32[1,2,1,1] = AvgPool(%0: " IMAGE
     ") {strides=[1,1], kernel=[8,8], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, data_format=NCX}; "
     "%3: f32[1,2,1,1] = Convolution(%1, %2: f32[2,2,1,1])" CONV "; %4: f32[1,2,1,1] = ReLU(%3); "
     "%6: f32[1,2,1,1] = Convolution(%4, %5: f32[2,2,1,1])" CONV "; %7: f32[1,2,1,1] = HardSigmoid(%6) "
     "{alpha=0.2, beta=0.5}; %8: " IMAGE " = Multiply(%0, %7)",
     "[squeeze_excite: 1,2,3,4,5,6]",
     // The gates are for something else.
     "%1: f32[1,2,1,1] = ReduceMean(%0: " IMAGE ") {axes=[2,3], keep_dims=true}; "
     "%3: f32[1,2,1,1] = Convolution(%1, %2: f32[2,2,1,1])" CONV "; %4: f32[1,2,1,1] = ReLU(%3); "
     "%6: f32[1,2,1,1] = Convolution(%4, %5: f32[2,2,1,1])" CONV "; %8: " IMAGE " = Multiply(%6, %7: " IMAGE ")",
     "[convolution_neighbourhood: 1,2,3] [convolution_neighbourhood: 4,5]"},
    {"squeeze_excite_gradients",
     "%2: " IMAGE " = Multiply(%0: " IMAGE ", %1: " IMAGE
     "); %3: f32[1,2,1,1] = ReduceSum(%2) {axes=[2,3], keep_dims=true}; "
     "%5: f32[1,2,1,1] = SigmoidBackward(%4: f32[1,2,1,1], %3); "
     "%7: f32[1,2,1,1] = ConvolutionBackwardData(%5, %6: f32[2,2,1,1])" CONV_CELL
     "; %9: f32[2,2,1,1] = ConvolutionBackwardWeights(%8: f32[1,2,1,1], %5)" CONV_WEIGHTS
     "; %10: f32[1,2,1,1] = ReLUBackward(%8, %7); "
     "%12: f32[1,2,1,1] = ConvolutionBackwardData(%10, %11: f32[2,2,1,1])" CONV_CELL
     "; %14: f32[2,2,1,1] = ConvolutionBackwardWeights(%13: f32[1,2,1,1], %10)" CONV_WEIGHTS "; %15: " IMAGE
     " = AvgPoolBackward(%12) {strides=[1,1], kernel=[8,8], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, "
     "src_shape=[1,2,8,8], data_format=NCX}; %16: " IMAGE " = Multiply(%0, %4); %17: " IMAGE " = Add(%15, %16); "
     "%18: " IMAGE " = ReLUBackward(%1, %17)",
     "[squeeze_excite_gradients: 1,2,3,4,5,6,7,8,9,10,11,12]",
     // One convolution, whose source's gradient is not spread.
     "%2: " IMAGE " = Multiply(%0: " IMAGE ", %1: " IMAGE
     "); %3: f32[1,2,1,1] = ReduceSum(%2) {axes=[2,3], keep_dims=true}; "
     "%7: f32[1,2,1,1] = ConvolutionBackwardData(%3, %6: f32[2,2,1,1])" CONV_CELL
     "; %9: f32[2,2,1,1] = ConvolutionBackwardWeights(%8: f32[1,2,1,1], %3)" CONV_WEIGHTS,
     "[convolution_gradients: 1,2,3,4]"},
    {"residual_blocks",
     // Two blocks; the shortcut of the first has a convolution.
     "%2: " IMAGE " = Convolution(%0: " IMAGE ", %1: f32[2,2,1,1])" CONV "; %3: " IMAGE " = ReLU(%2); "
     "%5: " IMAGE " = Convolution(%3, %4: f32[2,2,1,1])" CONV "; %7: " IMAGE " = Convolution(%0, %6: f32[2,2,1,1])" CONV
     "; %8: " IMAGE " = Add(%7, %5); %9: " IMAGE " = ReLU(%8); "
     "%11: " IMAGE " = Convolution(%9, %10: f32[2,2,1,1])" CONV "; %12: " IMAGE " = Add(%11, %9)",
     "[residual_blocks: 1,2,3,4,5,6,7,8]",
     // What is added comes from elsewhere.
     "%2: " IMAGE " = Convolution(%0: " IMAGE ", %1: f32[2,2,1,1])" CONV "; %3: " IMAGE " = ReLU(%2); "
     "%5: " IMAGE " = Convolution(%3, %4: f32[2,2,1,1])" CONV "; %8: " IMAGE " = Add(%5, %7: " IMAGE ")",
     "[convolution_neighbourhood: 1,2] [convolution_neighbourhood: 3,4]"},
    {"convolution_depthwise",
     "%2: " IMAGE " = Convolution(%0: " IMAGE ", %1: f32[2,2,1,1])" CONV "; %3: " IMAGE " = HardSwish(%2); "
     "%5: " IMAGE " = Convolution(%3, %4: f32[2,1,1,1])" DEPTHWISE,
     "[convolution_depthwise: 1,2,3]",
     "%2: " IMAGE " = Convolution(%0: " IMAGE ", %1: f32[2,2,1,1])" CONV "; %3: " IMAGE " = HardSwish(%2); "
     "%5: " IMAGE " = Convolution(%3, %4: f32[2,2,1,1])" CONV,
     "[convolution_neighbourhood: 1,2] [single_op: 3]"},
    {"pool_backward_convolution_gradients",
     "%1: " IMAGE " = AvgPoolBackward(%0: f32[1,2,4,4])" AVG "; %3: " IMAGE
     " = ConvolutionBackwardData(%1, %2: f32[2,2,1,1])" CONV_DATA
     "; %5: f32[2,2,1,1] = ConvolutionBackwardWeights(%4: " IMAGE ", %1)" CONV_WEIGHTS
     // The first convolution of a network has no gradient of its source.
     "; %11: " IMAGE " = AdaptiveAvgPoolBackward(%10: f32[1,2,4,4]) {data_format=NCX, src_shape=[1,2,8,8]}; "
     "%15: f32[2,2,1,1] = ConvolutionBackwardWeights(%14: " IMAGE ", %11)" CONV_WEIGHTS
     "; %16: f32[2] = BiasAddBackward(%11) {data_format=NCX}",
     "[pool_backward_convolution_gradients: 1,2,3] [pool_backward_convolution_gradients: 4,5,6]",
     // What the pooling's gradient makes is not the convolution's gradient but its source.
     "%1: " IMAGE " = AvgPoolBackward(%0: f32[1,2,4,4])" AVG
     "; %5: f32[2,2,1,1] = ConvolutionBackwardWeights(%1, %4: " IMAGE ")" CONV_WEIGHTS,
     "[convolution_gradient_neighbourhood: 1,2]"},
    {"convolution_gradients",
     // With the bias gradient, the activation's gradient before and the batch normalisation's behind.
     "%2: " IMAGE " = ReLUBackward(%0: " IMAGE ", %1: " IMAGE "); %4: " IMAGE
     " = ConvolutionBackwardData(%2, %3: f32[2,2,1,1])" CONV_DATA
     "; %6: f32[2,2,1,1] = ConvolutionBackwardWeights(%5: " IMAGE ", %2)" CONV_WEIGHTS
     "; %7: f32[2] = BiasAddBackward(%2) {data_format=NCX}; %12: " IMAGE " = BatchNormTrainingBackward(%8: " IMAGE
     ", %4, %9: f32[2], %10: f32[2])" NORM,
     "[convolution_gradients: 1,2,3,4,5]",
     "%4: " IMAGE " = ConvolutionBackwardData(%2: " IMAGE ", %3: f32[2,2,1,1])" CONV_DATA
     "; %6: f32[2,2,1,1] = ConvolutionBackwardWeights(%5: " IMAGE ", %7: " IMAGE ")" CONV_WEIGHTS,
     "[single_op: 1] [single_op: 2]"},
    {"matmul_gradients",
     "%3: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[8,4]) {transpose_b=true}; "
     "%4: f32[8,4] = MatMul(%2: f32[4,8], %0) {transpose_a=true}; %5: f32[4] = ReduceSum(%0) {axes=[0]}; "
     "%7: f32[4,8] = GELUBackward(%6: f32[4,8], %3)",
     "[matmul_gradients: 1,2,3,4]",
     "%3: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[8,4]) {transpose_b=true}; "
     "%4: f32[4,8] = MatMul(%0, %2: f32[8,4]) {transpose_b=true}",
     "[single_op: 1] [single_op: 2]"},

    {"convolution_gradient_neighbourhood",
     "%4: " IMAGE " = ConvolutionBackwardData(%2: " IMAGE ", %3: f32[2,2,1,1])" CONV_DATA "; %6: " IMAGE
     " = MaxPoolBackward(%4, %5: f32[1,2,4,4])" POOL "; %7: " IMAGE " = ReLUBackward(%8: " IMAGE ", %6)",
     "[convolution_gradient_neighbourhood: 1,2,3]",
     "%4: " IMAGE " = ConvolutionBackwardData(%2: " IMAGE ", %3: f32[2,2,1,1])" CONV_DATA "; %6: " IMAGE
     " = Wildcard(%4); %7: " IMAGE " = ReLU(%6)",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
    {"convolution_neighbourhood",
     // Quantized, with its own sigmoid, a pooling behind.
     "%2: " IMAGE " = Dequantize(%0: s8[1,2,8,8]) {scales=[1]}; %3: f32[2,2,1,1] = Dequantize(%1: s8[2,2,1,1]) "
     "{scales=[1]}; %4: " IMAGE " = Convolution(%2, %3)" CONV "; %5: " IMAGE " = Sigmoid(%4); %6: " IMAGE
     " = Multiply(%4, %5); %7: f32[1,2,4,4] = MaxPool(%6)" POOL "; %8: s8[1,2,4,4] = Quantize(%7) {scales=[1]}",
     "[convolution_neighbourhood: 1,2,3,4,5,6,7]",
     // The next one reads it: integers go from one group to the other.
     "%4: " IMAGE " = Convolution(%2: " IMAGE ", %3: f32[2,2,1,1])" CONV
     "; %8: s8[1,2,8,8] = Quantize(%4) {scales=[1]}; %9: " IMAGE " = Dequantize(%8) {scales=[1]}; %10: " IMAGE
     " = Convolution(%9, %3)" CONV,
     "[convolution_neighbourhood: 1,2] [convolution_neighbourhood: 3,4]"},
    {"matmul_neighbourhood",
     "%2: f32[4,4] = Multiply(%0: f32[4,4], %1: f32[4,4]); %4: f32[4,4] = MatMul(%2, %3: f32[4,4]); %5: f32[4,4] = "
     "GELU(%4); %6: f32[4,4] = SoftMax(%5); %7: f32[4,4] = Exp(%4)",
     "[matmul_neighbourhood: 1,2,3,4,5]",
     // The sum waits for a product that the group before feeds.
     "%4: f32[4,4] = MatMul(%2: f32[4,4], %3: f32[4,4]); %5: f32[4,4] = ReLU(%4); %6: f32[4,4] = MatMul(%5, %3); "
     "%7: f32[4,4] = Add(%5, %6)",
     "[matmul_neighbourhood: 1,2] [matmul_neighbourhood: 3,4]"},
    {"pool_backward_neighbourhood",
     "%2: f32[1,2,4,4] = Add(%0: f32[1,2,4,4], %1: f32[1,2,4,4]); %4: " IMAGE " = MaxPoolBackward(%3: " IMAGE
     ", %2)" POOL "; %6: " IMAGE
     " = ReLUBackward(%3, %4); %7: f32[2] = BiasAddBackward(%6) {data_format=NCX}; %12: " IMAGE
     " = BatchNormTrainingBackward(%8: " IMAGE ", %6, %9: f32[2], %10: f32[2])" NORM,
     "[pool_backward_neighbourhood: 1,2,3,4,5]",
     // The shape must be known before it is compiled.
     "%2: s32[4] = Add(%0: s32[4], %1: s32[4]); %4: " IMAGE " = AvgPoolBackward(%3: f32[1,2,4,4], %2) {strides=[2,2], "
     "kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, data_format=NCX}",
     "[single_op: 1] [single_op: 2]"},
    {"batch_norm_backward_neighbourhood",
     // The gradient enters at either port.
     "%2: " IMAGE " = ReLUBackward(%0: " IMAGE ", %1: " IMAGE "); %8: " IMAGE " = BatchNormTrainingBackward(%3: " IMAGE
     ", %2, %5: f32[2], %6: f32[2])" NORM "; %9: " IMAGE " = BatchNormTrainingBackward(%8, %7: " IMAGE ", %5, %6)" NORM,
     "[batch_norm_backward_neighbourhood: 1,2,3]",
     "%2: " IMAGE " = Wildcard(%0: " IMAGE "); %8: " IMAGE " = BatchNormTrainingBackward(%2, %3: " IMAGE
     ", %5: f32[2], %6: f32[2])" NORM,
     "[single_op: 1] [single_op: 2]"},
    {"batch_norm_neighbourhood",
     "%1: " IMAGE " = Abs(%0: " IMAGE "); %4: " IMAGE ", %5: f32[2], %6: f32[2], %7: f32[2], %8: f32[2] = "
     "BatchNormForwardTraining(%1, %2: f32[2], %3: f32[2])" NORM "; %9: " IMAGE " = ReLU(%4); %10: f32[2] = Sqrt(%8)",
     "[batch_norm_neighbourhood: 1,2,3,4]",
     "%4: " IMAGE ", %5: f32[2], %6: f32[2], %7: f32[2], %8: f32[2] = BatchNormForwardTraining(%0: " IMAGE
     ", %2: f32[2], %3: f32[2])" NORM "; %9: f32[2] = Wildcard(%7)",
     "[single_op: 1] [single_op: 2]"},
    {"rows_backward_neighbourhood",
     "%2: f32[4,8] = Multiply(%0: f32[4,8], %1: f32[4,8]); %4: f32[4,8] = SoftMaxBackward(%2, %3: f32[4,8]); "
     "%5: f32[4,8] = Multiply(%4, %6: f32[1])",
     "[rows_backward_neighbourhood: 1,2,3]",
     "%4: f32[4,8] = SoftMaxBackward(%2: f32[4,8], %3: f32[4,8]); %5: f32[4,8] = Multiply(%2, %6: f32[1])",
     "[single_op: 1] [single_op: 2]"},
    {"rows_neighbourhood",
     "%2: f32[4,8] = Add(%0: f32[4,8], %1: f32[4,8]); %5: f32[4,8] = LayerNorm(%2, %3: f32[8], %4: f32[8]) "
     "{keep_stats=false}; %6: f32[4,8] = GELU(%5); %7: f32[4,8] = SoftMax(%6)",
     "[rows_neighbourhood: 1,2,3,4]", "%1: f32[4,8] = SoftMax(%0: f32[4,8]); %2: f32[4,8] = SoftMax(%3: f32[4,8])",
     "[single_op: 1] [single_op: 2]"},
    {"pool_neighbourhood",
     "%1: " IMAGE " = Dequantize(%0: u8[1,2,8,8]) {scales=[1]}; %2: f32[1,2,4,4] = MaxPool(%1)" POOL
     "; %3: f32[2,16] = StaticReshape(%2) {shape=[2,16], special_zero=false}; %4: u8[2,16] = Quantize(%3) {scales=[1]}",
     "[pool_neighbourhood: 1,2,3,4]",
     // Two groups read what the pooling makes.
     "%2: f32[1,2,4,4] = MaxPool(%1: " IMAGE ")" POOL "; %3: f32[1,2,4,4] = MatMul(%2, %4: f32[4,4]); "
     "%5: f32[1,2,4,4] = MatMul(%2, %6: f32[4,4])",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
    {"resample_neighbourhood",
     "%1: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); %2: " IMAGE " = Interpolate(%1) {mode=nearest, scales=[2,2], "
     "data_format=NCX}; %4: " IMAGE " = Add(%2, %3: " IMAGE ")",
     "[resample_neighbourhood: 1,2,3]",
     "%1: f32[1,2,4,4] = Wildcard(%0: f32[1,2,4,4]); %2: " IMAGE " = Interpolate(%1) {mode=nearest, scales=[2,2], "
     "data_format=NCX}",
     "[single_op: 1] [single_op: 2]"},
    {"reduction_neighbourhood",
     // A gradient is scaled by its norm.
     "%2: f32[4,8] = Multiply(%0: f32[4,8], %1: f32[4,8]); %3: f32[1,1] = ReduceL2(%2) {axes=[0,1], keep_dims=true}; "
     "%4: f32[4,8] = Divide(%2, %3)",
     "[reduction_neighbourhood: 1,2,3]",
     "%3: f32[4] = ReduceSum(%2: f32[4,8]) {axes=[1]}; %4: f32[4] = ReduceSum(%1: f32[4,8]) {axes=[1]}",
     "[single_op: 1] [single_op: 2]"},
    {"elementwise_neighbourhood",
     // One step of Adam.
     "%10: f32[8] = Multiply(%0: f32[8], %1: f32[1]); %11: f32[8] = Multiply(%2: f32[8], %3: f32[1]); "
     "%12: f32[8] = Add(%10, %11); %13: f32[8] = Square(%2); %14: f32[8] = Multiply(%13, %4: f32[1]); "
     "%15: f32[8] = Multiply(%5: f32[8], %6: f32[1]); %16: f32[8] = Add(%14, %15); %17: f32[8] = Sqrt(%16); "
     "%18: f32[8] = Add(%17, %7: f32[1]); %19: f32[8] = Divide(%12, %18); %20: f32[8] = Multiply(%19, %8: f32[1]); "
     "%21: f32[8] = Subtract(%9: f32[8], %20)",
     "[elementwise_neighbourhood: 1,2,3,4,5,6,7,8,9,10,11,12]",
     "%1: f32[4] = Abs(%0: f32[4]); %2: f32[4] = Wildcard(%1); %3: f32[4] = Add(%2, %9: f32[4])",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
    {"movement_neighbourhood",
     "%1: f32[2,3,4] = StaticReshape(%0: f32[6,4]) {shape=[2,3,4], special_zero=false}; "
     "%2: f32[3,2,4] = StaticTranspose(%1) {order=[1,0,2]}; "
     "%3: f32[6,4] = StaticReshape(%2) {shape=[6,4], special_zero=false}",
     "[movement_neighbourhood: 1,2,3]", "%1: f32[4,4] = Reorder(%0: f32[4,4]); %2: f32[4,4] = Reorder(%3: f32[4,4])",
     "[single_op: 1] [single_op: 2]"},
};

TEST(pattern_table, each_pattern_claims_its_graph_and_leaves_the_one_beside_it) {
  for (const Case& c : kCases) {
    EXPECT_EQ(partition_text(c.matching), c.claimed) << c.pattern;
    EXPECT_EQ(partition_text(c.not_matching), c.left) << c.pattern;
  }
}

TEST(pattern_table, poolings_beyond_onednn_graph_have_the_neighbours_of_the_others) {
#define SHAPE " {src_shape=[1,2,8,8], data_format=NCX}"
  EXPECT_EQ(partition_text("%2: f32[1,2,4,4] = Add(%0: f32[1,2,4,4], %1: f32[1,2,4,4]); %4: f32[1,2,8,8] = "
                           "MaxPoolIndicesBackward(%2, %3: s64[1,2,4,4])" SHAPE
                           "; %6: f32[1,2,8,8] = ReLUBackward(%5: f32[1,2,8,8], %4)"),
            "[pool_backward_neighbourhood: 1,2,3]");
  EXPECT_EQ(partition_text("%4: f32[1,2,8,8] = MaxPoolIndicesBackward(%2: f32[1,2,4,4], %3: s64[1,2,4,4])" SHAPE
                           "; %6: f32[1,2,8,8] = ReLUBackward(%5: f32[1,2,8,8], %4); %7: f32[2] = BiasAddBackward(%6) "
                           "{data_format=NCX}"),
            "[pool_backward_neighbourhood: 1,2,3]");
  EXPECT_EQ(partition_text("%2: f32[1,2,3,5] = Multiply(%0: f32[1,2,3,5], %1: f32[1]); %3: f32[1,2,8,8] = "
                           "AdaptiveAvgPoolBackward(%2)" SHAPE "; %5: f32[1,2,8,8] = Add(%3, %4: f32[1,2,8,8])"),
            "[pool_backward_neighbourhood: 1,2,3]");
  EXPECT_EQ(partition_text("%1: f32[1,2,8,8] = ReLU(%0: f32[1,2,8,8]); %2: f32[1,2,3,5] = AdaptiveAvgPool(%1) "
                           "{sizes=[3,5], data_format=NCX}; %3: f32[1,2,3,5] = Abs(%2)"),
            "[pool_neighbourhood: 1,2,3]");
  EXPECT_EQ(partition_text("%1: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); %2: f32[1,2,2,2], %4: s64[1,2,2,2] = "
                           "MaxPool(%1)" POOL "; %3: f32[1,2,2,2] = Abs(%2)"),
            "[pool_neighbourhood: 1,2,3]");
  EXPECT_EQ(partition_text("%4: f32[1,2,8,8] = MaxPoolIndicesBackward(%2: f32[1,2,4,4], %3: s64[1,2,4,4])" SHAPE
                           "; %6: f32[1,2,8,8] = SoftMax(%4) {axis=-1}"),
            "[pool_backward_neighbourhood: 1,2]");
#undef SHAPE
}

/// Chains of training, each one partition, and what it is.
const Chain kTrainingChains[] = {
    // A pooling behind a convolution and its activation.
    {"convolution_neighbourhood", "%2: " IMAGE " = Convolution(%0: " IMAGE ", %1: f32[2,2,1,1])" CONV "; %3: " IMAGE
                                  " = ReLU(%2); %4: f32[1,2,4,4] = MaxPool(%3)" POOL},
    // A convolution's data gradient, then activation, sum of gradients and batch normalisation, all backwards.
    {"convolution_gradient_neighbourhood",
     "%4: " IMAGE " = ConvolutionBackwardData(%2: " IMAGE ", %3: f32[2,2,1,1])" CONV_DATA "; %5: " IMAGE
     " = Add(%6: " IMAGE ", %4); %7: " IMAGE " = ReLUBackward(%8: " IMAGE ", %5); %12: " IMAGE
     " = BatchNormTrainingBackward(%9: " IMAGE ", %7, %10: f32[2], %11: f32[2])" NORM},
    // The residual block's end, forward: convolution, batch normalisation, sum, activation.
    {"convolution_neighbourhood",
     "%2: " IMAGE " = Convolution(%0: " IMAGE ", %1: f32[2,2,1,1])" CONV "; %4: " IMAGE
     ", %5: f32[2], %6: f32[2], %7: f32[2], %8: f32[2] = BatchNormForwardTraining(%2, %9: f32[2], %10: f32[2])" NORM
     "; %11: " IMAGE " = Add(%4, %12: " IMAGE "); %13: " IMAGE " = ReLU(%11)"},
    // The gradients of a transposed convolution with its bias.
    {"convolution_gradients", "%3: " IMAGE " = ConvTransposeBackwardData(%0: " IMAGE ", %1: f32[2,2,1,1]) {" CONV_BODY
                              "}; %4: f32[2,2,1,1] = ConvTransposeBackwardWeights(%2: " IMAGE ", %0)" CONV_WEIGHTS
                              "; %5: f32[2] = BiasAddBackward(%0) {data_format=NCX}"},
    // A dense layer behind an activation, backwards: both gradients, the bias's, the next activation's.
    {"matmul_gradients",
     "%2: f32[4,8] = GELUBackward(%0: f32[4,8], %1: f32[4,8]); %4: f32[4,8] = MatMul(%2, %3: f32[8,8]); "
     "%6: f32[8,8] = MatMul(%5: f32[8,4], %2); %7: f32[8] = ReduceSum(%2) {axes=[0]}; "
     "%9: f32[4,8] = SigmoidBackward(%8: f32[4,8], %4)"},
    // Softmax's gradient between a scale and a mask.
    {"rows_backward_neighbourhood",
     "%2: f32[4,8] = Multiply(%0: f32[4,8], %1: f32[1]); %4: f32[4,8] = SoftMaxBackward(%2, %3: f32[4,8]); "
     "%7: f32[4,8] = Select(%5: boolean[4,8], %4, %6: f32[1])"},
    // Layer normalisation's gradient with the residual sum behind.
    {"rows_backward_neighbourhood",
     "%9: f32[4,8], %10: f32[8], %11: f32[8] = LayerNormBackward(%0: f32[4,8], %1: f32[4,8], %2: f32[4], %3: f32[4], "
     "%4: f32[8], %5: f32[8]); %12: f32[4,8] = Add(%9, %1)"},
    {"elementwise_neighbourhood", "%3: " IMAGE ", %4: f32[2] = PReLUBackward(%0: " IMAGE ", %1: f32[2], %2: " IMAGE
                                  ") {data_format=NCX}; %5: " IMAGE " = Add(%3, %2)"},
    {"resample_neighbourhood",
     "%3: f32[1,2,4,4] = InterpolateBackward(%0: f32[1,2,4,4], %1: " IMAGE ") {mode=nearest, scales=[2,2], "
     "data_format=NCX}; %5: f32[1,2,4,4] = ReLUBackward(%4: f32[1,2,4,4], %3)"},
    // Dropout behind a residual sum, and its gradient, which is the mask times the gradient.
    {"elementwise_neighbourhood",
     "%2: f32[4,8] = Add(%0: f32[4,8], %1: f32[4,8]); %6: f32[4,8], %7: u8[4,8] = Dropout(%2, %3: s64[1], %4: s64[1], "
     "%5: f32[1]); %8: f32[4,8] = ReLU(%6)"},
    {"elementwise_neighbourhood",
     "%2: f32[4,8] = Dequantize(%0: u8[4,8]) {scales=[2]}; %3: f32[4,8] = Multiply(%2, %1: f32[4,8]); "
     "%5: f32[4,8] = Add(%3, %4: f32[4,8])"},
    // Gradients of several steps are summed up.
    {"elementwise_neighbourhood",
     "%2: f32[8] = Add(%0: f32[8], %1: f32[8]); %4: f32[8] = Add(%3: f32[8], %2); %6: f32[8] = Add(%4, %5: f32[8])"},
};

/// What else the gradients of attention, of gates and of products are written as, and gated MLPs, each one partition;
/// and beside each a graph that differs in what the pattern is about.
const Spelling kSpellings[] = {
    {"attention_backward_softmax",
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; %4: f32[8,8] = Multiply(%2, %3: f32[8,8]); "
     "%5: f32[8,1] = ReduceSum(%4) {axes=[1], keep_dims=true}; %6: f32[8,8] = Multiply(%3, %5); "
     "%7: f32[8,8] = Subtract(%4, %6); %9: f32[8,4] = MatMul(%7, %8: f32[8,4]); "
     "%11: f32[8,4] = MatMul(%7, %10: f32[8,4]) {transpose_a=true}; %12: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     // The sum is multiplied with something else than it was made of.
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; %4: f32[8,8] = Multiply(%2, %3: f32[8,8]); "
     "%5: f32[8,1] = ReduceSum(%4) {axes=[1], keep_dims=true}; %6: f32[8,8] = Multiply(%13: f32[8,8], %5); "
     "%7: f32[8,8] = Subtract(%4, %6); %9: f32[8,4] = MatMul(%7, %8: f32[8,4]); "
     "%11: f32[8,4] = MatMul(%7, %10: f32[8,4]) {transpose_a=true}; %12: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     "[matmul_gradients: 1,2,3,4,5,8] [matmul_gradients: 6,7]"},
    {"attention_backward_softmax",
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; "
     "%14: f32[8,8] = Multiply(%2, %13: f32[8,8]); %4: f32[8,8] = Multiply(%3: f32[8,8], %14); "
     "%5: f32[8,1] = ReduceSum(%4) {axes=[1], keep_dims=true}; "
     "%6: f32[8,8] = Subtract(%14, %5); %7: f32[8,8] = Multiply(%3, %6); %9: f32[8,4] = MatMul(%7, %8: f32[8,4]); "
     "%11: f32[8,4] = MatMul(%7, %10: f32[8,4]) {transpose_a=true}; %12: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     // The sum is subtracted from something else than was summed.
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; "
     "%14: f32[8,8] = Multiply(%2, %13: f32[8,8]); %4: f32[8,8] = Multiply(%3: f32[8,8], %14); "
     "%5: f32[8,1] = ReduceSum(%4) {axes=[1], keep_dims=true}; "
     "%6: f32[8,8] = Subtract(%15: f32[8,8], %5); %7: f32[8,8] = Multiply(%3, %6); %9: f32[8,4] = MatMul(%7, %8: "
     "f32[8,4]); "
     "%11: f32[8,4] = MatMul(%7, %10: f32[8,4]) {transpose_a=true}; %12: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     "[matmul_gradients: 1,2,3,4,5,6,9] [matmul_gradients: 7,8]"},
    // The last factor has a scale in it.
    {"attention_backward_softmax",
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; %4: f32[8,8] = Multiply(%3: f32[8,8], %2); "
     "%5: f32[8,1] = ReduceSum(%4) {axes=[1], keep_dims=true}; %6: f32[8,8] = Subtract(%2, %5); "
     "%7: f32[8,8] = Multiply(%6, %16: f32[8,8]); %9: f32[8,4] = MatMul(%7, %8: f32[8,4]); "
     "%11: f32[8,4] = MatMul(%7, %10: f32[8,4]) {transpose_a=true}; %12: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     // What is summed is no product.
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}; %4: f32[8,8] = Add(%3: f32[8,8], %2); "
     "%5: f32[8,1] = ReduceSum(%4) {axes=[1], keep_dims=true}; %6: f32[8,8] = Subtract(%2, %5); "
     "%7: f32[8,8] = Multiply(%6, %16: f32[8,8]); %9: f32[8,4] = MatMul(%7, %8: f32[8,4]); "
     "%11: f32[8,4] = MatMul(%7, %10: f32[8,4]) {transpose_a=true}; %12: f32[8,4] = MatMul(%3, %0) {transpose_a=true}",
     "[matmul_gradients: 1,2,3,4,5,8] [matmul_gradients: 6,7]"},
    // Probabilities are rounded to integers, with a scale that an operand holds.
    {"attention",
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[4,8]); %3: f32[8,8] = SoftMax(%2) {axis=-1}; "
     "%5: u8[8,8] = DynamicQuantize(%3, %4: f32[1]) {qtype=per_tensor}; "
     "%6: f32[8,8] = DynamicDequantize(%5, %4) {qtype=per_tensor}; %8: f32[8,4] = MatMul(%6, %7: f32[8,4])",
     // Nothing multiplies them.
     "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[4,8]); %3: f32[8,8] = SoftMax(%2) {axis=-1}; "
     "%5: u8[8,8] = DynamicQuantize(%3, %4: f32[1]) {qtype=per_tensor}",
     "[matmul_neighbourhood: 1,2,3]"},
    {"gated_mlp",
     "%2: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[4,8]); %12: f32[4,8] = Add(%2, %10: f32[8]); "
     "%4: f32[4,8] = MatMul(%0, %3: f32[4,8]); %13: f32[4,8] = BiasAdd(%4, %11: f32[8]) {data_format=NXC}; "
     "%5: f32[4,8] = Sigmoid(%13); %6: f32[4,8] = Multiply(%13, %5); %7: f32[4,8] = Multiply(%12, %6); "
     "%9: f32[4,4] = MatMul(%7, %8: f32[8,4])",
     // The two products have no factor in common.
     "%2: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[4,8]); %12: f32[4,8] = Add(%2, %10: f32[8]); "
     "%4: f32[4,8] = MatMul(%14: f32[4,4], %3: f32[4,8]); %13: f32[4,8] = BiasAdd(%4, %11: f32[8]) {data_format=NXC}; "
     "%5: f32[4,8] = Sigmoid(%13); %6: f32[4,8] = Multiply(%13, %5); %7: f32[4,8] = Multiply(%12, %6); "
     "%9: f32[4,4] = MatMul(%7, %8: f32[8,4])",
     "[matmul_neighbourhood: 1,2,3,4,5,6,7] [single_op: 8]"},
    {"gated_mlp",
     "%2: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[4,8]); %12: f32[4,8] = Multiply(%2, %10: f32[1]); "
     "%4: f32[4,8] = MatMul(%0, %3: f32[4,8]); %5: f32[4,8] = Sigmoid(%4); %6: f32[4,8] = Multiply(%4, %5); "
     "%13: f32[4,8] = Clamp(%6) {min=-7, max=7}; %7: f32[4,8] = Multiply(%13, %12); "
     "%9: f32[4,4] = MatMul(%7, %8: f32[8,4])",
     // What was made is the second factor of the next product.
     "%2: f32[4,8] = MatMul(%0: f32[4,4], %1: f32[4,8]); %12: f32[4,8] = Multiply(%2, %10: f32[1]); "
     "%4: f32[4,8] = MatMul(%0, %3: f32[4,8]); %5: f32[4,8] = Sigmoid(%4); %6: f32[4,8] = Multiply(%4, %5); "
     "%13: f32[4,8] = Clamp(%6) {min=-7, max=7}; %7: f32[4,8] = Multiply(%13, %12); "
     "%9: f32[4,8] = MatMul(%8: f32[4,4], %7)",
     "[matmul_neighbourhood: 1,2,3,4,5,6,7] [single_op: 8]"},
    // Averages as a pooling and as a multiplication.
    {"squeeze_excite_gradients",
     "%2: " IMAGE " = Multiply(%0: " IMAGE ", %1: " IMAGE "); %3: f32[1,2] = ReduceSum(%2) {axes=[2,3]}; "
     "%5: f32[1,2] = SigmoidBackward(%4: f32[1,2], %3); %7: f32[1,4] = MatMul(%5, %6: f32[4,2]) {transpose_b=true}; "
     "%9: f32[4,2] = MatMul(%8: f32[1,4], %5) {transpose_a=true}; %10: f32[1,4] = ReLUBackward(%8, %7); "
     "%12: f32[1,2] = MatMul(%10, %11: f32[4,2]); %14: f32[2,4] = MatMul(%13: f32[1,2], %10) {transpose_a=true}; "
     "%18: f32[1,2,1,1] = StaticReshape(%12) {shape=[1,2,1,1], special_zero=false}; %15: " IMAGE
     " = AvgPoolBackward(%18) {strides=[1,1], kernel=[8,8], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, "
     "src_shape=[1,2,8,8], data_format=NCX}; %16: " IMAGE " = Multiply(%0, %19: f32[1,2,1,1]); %17: " IMAGE
     " = Add(%15, %16)",
     // Nothing is spread over what was summed.
     "%2: " IMAGE " = Multiply(%0: " IMAGE ", %1: " IMAGE "); %3: f32[1,2] = ReduceSum(%2) {axes=[2,3]}; "
     "%5: f32[1,2] = SigmoidBackward(%4: f32[1,2], %3); %7: f32[1,4] = MatMul(%5, %6: f32[4,2]) {transpose_b=true}; "
     "%9: f32[4,2] = MatMul(%8: f32[1,4], %5) {transpose_a=true}; %10: f32[1,4] = ReLUBackward(%8, %7); "
     "%12: f32[1,2] = MatMul(%10, %11: f32[4,2]); %14: f32[2,4] = MatMul(%13: f32[1,2], %10) {transpose_a=true}",
     "[matmul_gradients: 1,2,3,4,5,6] [matmul_gradients: 7,8]"},
    {"squeeze_excite_gradients",
     "%2: " IMAGE " = Multiply(%0: " IMAGE ", %1: " IMAGE "); %3: f32[1,2] = ReduceSum(%2) {axes=[2,3]}; "
     "%5: f32[1,2] = SigmoidBackward(%4: f32[1,2], %3); %7: f32[1,4] = MatMul(%5, %6: f32[2,4]); "
     "%9: f32[2,4] = MatMul(%5, %8: f32[1,4]) {transpose_a=true}; %10: f32[1,4] = ReLUBackward(%8, %7); "
     "%12: f32[1,2] = MatMul(%10, %11: f32[4,2]); %14: f32[4,2] = MatMul(%10, %13: f32[1,2]) {transpose_a=true}; "
     "%18: f32[1,2,1,1] = StaticReshape(%12) {shape=[1,2,1,1], special_zero=false}; "
     "%15: f32[1,2,1,1] = Multiply(%18, %20: f32[1]); %16: " IMAGE " = Multiply(%0, %19: f32[1,2,1,1]); %17: " IMAGE
     " = Add(%16, %15)",
     // What goes around the gates is the gradient of something else.
     "%2: " IMAGE " = Multiply(%0: " IMAGE ", %1: " IMAGE "); %3: f32[1,2] = ReduceSum(%2) {axes=[2,3]}; "
     "%5: f32[1,2] = SigmoidBackward(%4: f32[1,2], %3); %7: f32[1,4] = MatMul(%5, %6: f32[2,4]); "
     "%9: f32[2,4] = MatMul(%5, %8: f32[1,4]) {transpose_a=true}; %10: f32[1,4] = ReLUBackward(%8, %7); "
     "%12: f32[1,2] = MatMul(%10, %11: f32[4,2]); %14: f32[4,2] = MatMul(%10, %13: f32[1,2]) {transpose_a=true}; "
     "%18: f32[1,2,1,1] = StaticReshape(%12) {shape=[1,2,1,1], special_zero=false}; "
     "%15: f32[1,2,1,1] = Multiply(%18, %20: f32[1]); %16: " IMAGE " = Multiply(%21: " IMAGE
     ", %19: f32[1,2,1,1]); %17: " IMAGE " = Add(%16, %15)",
     "[matmul_gradients: 1,2,3,4,5,6] [matmul_gradients: 7,8,9,10,11,12]"},
    // The gradient is the first factor of both, the second of both, flat for one of them, transposed before.
    {"matmul_gradients",
     "%3: f32[4,8] = MatMul(%0: f32[4,6], %1: f32[6,8]); %4: f32[6,8] = MatMul(%0, %2: f32[4,8]) {transpose_a=true}; "
     "%5: f32[6] = ReduceSum(%0) {axes=[0]}",
     // Both products sum over columns.
     "%3: f32[4,8] = MatMul(%0: f32[4,6], %1: f32[6,8]); %4: f32[4,8] = MatMul(%0, %2: f32[6,8]); "
     "%5: f32[6] = ReduceSum(%0) {axes=[0]}",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
    {"matmul_gradients",
     "%3: f32[8,4] = MatMul(%1: f32[8,6], %0: f32[4,6]) {transpose_b=true}; "
     "%4: f32[8,6] = MatMul(%2: f32[4,8], %0) {transpose_a=true}; %5: f32[6] = BiasAddBackward(%0) {data_format=NXC}",
     // Two gradients.
     "%3: f32[8,4] = MatMul(%1: f32[8,6], %0: f32[4,6]) {transpose_b=true}; "
     "%4: f32[8,6] = MatMul(%2: f32[4,8], %6: f32[4,6]) {transpose_a=true}; %5: f32[6] = BiasAddBackward(%0) "
     "{data_format=NXC}",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
    {"matmul_gradients",
     "%10: f32[2,4,6] = GELUBackward(%9: f32[2,4,6], %0: f32[2,4,6]); %3: f32[2,4,8] = MatMul(%10, %1: f32[6,8]); "
     "%7: f32[8,6] = StaticReshape(%10) {shape=[8,6], special_zero=false}; "
     "%4: f32[6,8] = MatMul(%7, %2: f32[8,8]) {transpose_a=true}; %5: f32[6] = ReduceSum(%10) {axes=[0,1]}",
     // A product goes back through the matrix that it came through.
     "%2: f32[4,6] = MatMul(%0: f32[4,8], %1: f32[6,8]) {transpose_b=true}; %3: f32[4,6] = ReLU(%2); "
     "%4: f32[4,8] = MatMul(%3, %1)",
     "[matmul_neighbourhood: 1,2] [single_op: 3]"},
    {"matmul_gradients",
     "%7: f32[8,6] = StaticReshape(%0: f32[2,4,6]) {shape=[8,6], special_zero=false}; "
     "%3: f32[2,4,8] = MatMul(%0, %1: f32[6,8]); %4: f32[8,6] = MatMul(%2: f32[8,8], %7); "
     "%5: f32[6] = ReduceSum(%7) {axes=[0]}; %6: f32[6] = BiasAddBackward(%0) {data_format=NXC}",
     // Queries and keys are made of one source.
     "%7: f32[8,6] = StaticReshape(%0: f32[2,4,6]) {shape=[8,6], special_zero=false}; "
     "%3: f32[2,4,8] = MatMul(%0, %1: f32[6,8]); %4: f32[8,8] = MatMul(%2: f32[8,6], %7) {transpose_b=true}",
     "[single_op: 2] [matmul_neighbourhood: 1,3]"},
    {"matmul_gradients",
     "%7: f32[6,4] = StaticTranspose(%0: f32[4,6]) {order=[1,0]}; %3: f32[4,8] = MatMul(%0, %1: f32[6,8]); "
     "%4: f32[6,8] = MatMul(%7, %2: f32[4,8]); %5: f32[6] = ReduceSum(%0) {axes=[0]}",
     // Heads come to the front: both products sum over columns.
     "%7: f32[4,2,6] = StaticTranspose(%0: f32[2,4,6]) {order=[1,0,2]}; %3: f32[2,4,8] = MatMul(%0, %1: f32[6,8]); "
     "%4: f32[4,2,8] = MatMul(%7, %2: f32[6,8])",
     "[single_op: 2] [matmul_neighbourhood: 1,3]"},
    {"matmul_gradients",
     "%7: f32[6,4] = StaticTranspose(%0: f32[4,6]) {order=[1,0]}; %3: f32[8,4] = MatMul(%1: f32[8,6], %7); "
     "%4: f32[8,6] = MatMul(%2: f32[8,4], %0)",
     // Both products read the transposed one, and sum over columns.
     "%7: f32[6,4] = StaticTranspose(%0: f32[4,6]) {order=[1,0]}; %3: f32[8,4] = MatMul(%1: f32[8,6], %7); "
     "%4: f32[8,4] = MatMul(%2: f32[8,6], %7)",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
};

TEST(pattern_table, other_spellings_are_one_partition) {
  for (const Spelling& s : kSpellings) {
    const std::string found = partition_text(s.text);
    EXPECT_TRUE(found.starts_with(str("[", s.pattern, ": ")) && std::count(found.begin(), found.end(), '[') == 1)
        << found << " of " << s.text;
  }
}

TEST(pattern_table, what_only_looks_like_such_a_spelling_is_left) {
  for (const Spelling& s : kSpellings) EXPECT_EQ(partition_text(s.not_matching), s.left) << "beside " << s.text;
}

TEST(pattern_table, chains_of_training_are_one_partition) {
  for (const Chain& c : kTrainingChains) {
    const std::string found = partition_text(c.text);
    EXPECT_TRUE(found.starts_with(str("[", c.group, ": ")) && std::count(found.begin(), found.end(), '[') == 1)
        << found << " of " << c.text;
  }
}

TEST(pattern_table, every_pattern_has_a_case_and_a_text) {
  std::set<std::string_view> cases;
  for (const Case& c : kCases) cases.insert(c.pattern);
  for (const auto& pattern : all_patterns()) {
    EXPECT_TRUE(cases.count(pattern.name)) << pattern.name << " has no case here";
    EXPECT_FALSE(pattern.text.empty()) << pattern.name;
  }
  for (const RuleName& row : rule_names()) EXPECT_TRUE(cases.count(row.name)) << row.name << " has no case here";
}

}  // namespace
}  // namespace partita::test
