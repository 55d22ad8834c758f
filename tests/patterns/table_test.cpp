// SPDX-License-Identifier: Apache-2.0
// Every pattern of the table: a graph it must claim, and one close to it that it must not.
#include <gtest/gtest.h>

#include <set>

#include "passes/pattern.hpp"
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

/// Attributes that the operators below need.
#define POOL " {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], data_format=NCX}"
#define AVG                                                                                                  \
  " {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, src_shape=[1,2,8,8], " \
  "data_format=NCX}"
#define CONV " {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX}"

const Case kCases[] = {
    {"max_pool_backward_elementwise",
     "%2: f32[1,2,4,4] = Add(%0: f32[1,2,4,4], %1: f32[1,2,4,4]); %4: f32[1,2,8,8] = MaxPoolBackward(%3: f32[1,2,8,8], "
     "%2)" POOL "; %6: f32[1,2,8,8] = ReLUBackward(%5: f32[1,2,8,8], %4)",
     "[max_pool_backward_elementwise: 1,2,3]",
     // The sum is the source, not the gradient.
     "%2: f32[1,2,8,8] = Add(%0: f32[1,2,8,8], %1: f32[1,2,8,8]); %4: f32[1,2,8,8] = MaxPoolBackward(%2, %3: "
     "f32[1,2,4,4])" POOL,
     "[single_op: 1] [single_op: 2]"},
    {"avg_pool_backward_elementwise",
     "%2: f32[1,2,4,4] = Multiply(%0: f32[1,2,4,4], %1: f32[1]); %3: f32[1,2,8,8] = AvgPoolBackward(%2)" AVG
     "; %5: f32[1,2,8,8] = Add(%3, %4: f32[1,2,8,8])",
     "[avg_pool_backward_elementwise: 1,2,3]",
     "%3: f32[1,2,8,8] = AvgPoolBackward(%2: f32[1,2,4,4])" AVG "; %5: f32[1,2,8,8] = SoftMax(%3) {axis=-1}",
     "[single_op: 1] [single_op: 2]"},
    {"pool_backward_batch_norm_backward",
     "%2: f32[1,2,8,8] = MaxPoolBackward(%0: f32[1,2,8,8], %1: f32[1,2,4,4])" POOL
     "; %3: f32[1,2,8,8] = ReLUBackward(%0, %2); %8: f32[1,2,8,8] = BatchNormTrainingBackward(%4: f32[1,2,8,8], %3, "
     "%5: f32[2], %6: f32[2]) {epsilon=0.1, data_format=NCX}",
     "[pool_backward_batch_norm_backward: 1,2,3]",
     // The pooling's gradient is the normalisation's source.
     "%2: f32[1,2,8,8] = MaxPoolBackward(%0: f32[1,2,8,8], %1: f32[1,2,4,4])" POOL
     "; %8: f32[1,2,8,8] = BatchNormTrainingBackward(%2, %4: f32[1,2,8,8], %5: f32[2], %6: f32[2]) {epsilon=0.1, "
     "data_format=NCX}",
     "[single_op: 1] [single_op: 2]"},
    {"pool_backward_reduction",
     "%2: f32[1,2,8,8] = MaxPoolBackward(%0: f32[1,2,8,8], %1: f32[1,2,4,4])" POOL
     "; %3: f32[1,2,8,8] = ReLUBackward(%0, %2); %4: f32[2] = BiasAddBackward(%3) {data_format=NCX}; %6: f32[1,2,8,8] "
     "= "
     "ConvolutionBackwardData(%3, %5: f32[2,2,1,1]) {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], "
     "dst_shape=[1,2,8,8], data_format=NCX, weights_format=OIX}",
     "[pool_backward_reduction: 1,2,3] [single_op: 4]",
     // The bias gradient is taken of another tensor.
     "%2: f32[1,2,8,8] = MaxPoolBackward(%0: f32[1,2,8,8], %1: f32[1,2,4,4])" POOL
     "; %4: f32[2] = BiasAddBackward(%0) {data_format=NCX}",
     "[single_op: 1] [single_op: 2]"},
    {"pool_elementwise",
     "%1: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); %2: f32[1,2,2,2] = MaxPool(%1)" POOL "; %3: f32[1,2,2,2] = Abs(%2)",
     "[pool_elementwise: 1,2,3]", "%1: f32[1,2,4,4] = SoftMax(%0: f32[1,2,4,4]); %2: f32[1,2,2,2] = MaxPool(%1)" POOL,
     "[single_op: 1] [single_op: 2]"},
    {"batch_norm_elementwise",
     "%1: f32[1,2,4,4] = Abs(%0: f32[1,2,4,4]); %4: f32[1,2,4,4], %5: f32[2], %6: f32[2], %7: f32[2], %8: f32[2] = "
     "BatchNormForwardTraining(%1, %2: f32[2], %3: f32[2]) {epsilon=0.1, data_format=NCX}; %9: f32[1,2,4,4] = ReLU(%4)",
     "[batch_norm_elementwise: 1,2,3]",
     // The operator behind reads a statistic.
     "%4: f32[1,2,4,4], %5: f32[2], %6: f32[2], %7: f32[2], %8: f32[2] = BatchNormForwardTraining(%0: f32[1,2,4,4], "
     "%2: f32[2], %3: f32[2]) {epsilon=0.1, data_format=NCX}; %9: f32[2] = ReLU(%7)",
     "[single_op: 1] [single_op: 2]"},
    {"batch_norm_backward_elementwise",
     "%2: f32[1,2,4,4] = ReLUBackward(%0: f32[1,2,4,4], %1: f32[1,2,4,4]); %8: f32[1,2,4,4] = "
     "BatchNormTrainingBackward(%3: f32[1,2,4,4], %2, %5: f32[2], %6: f32[2]) {epsilon=0.1, data_format=NCX}; "
     "%9: f32[1,2,4,4] = Add(%8, %7: f32[1,2,4,4])",
     "[batch_norm_backward_elementwise: 1,2,3]",
     "%2: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); %8: f32[1,2,4,4] = BatchNormTrainingBackward(%2, %3: f32[1,2,4,4], "
     "%5: f32[2], %6: f32[2]) {epsilon=0.1, data_format=NCX}",
     "[single_op: 1] [single_op: 2]"},
    {"rows_elementwise",
     "%2: f32[4,8] = Add(%0: f32[4,8], %1: f32[4,8]); %5: f32[4,8] = LayerNorm(%2, %3: f32[8], %4: f32[8]) "
     "{keep_stats=false}; %6: f32[4,8] = GELU(%5)",
     "[rows_elementwise: 1,2,3]",
     // What is made before is the factor, not the source.
     "%2: f32[8] = Add(%0: f32[8], %1: f32[8]); %5: f32[4,8] = LayerNorm(%9: f32[4,8], %2, %4: f32[8]) "
     "{keep_stats=false}",
     "[single_op: 1] [single_op: 2]"},
    {"rows_backward_elementwise",
     "%2: f32[4,8] = Multiply(%0: f32[4,8], %1: f32[4,8]); %4: f32[4,8] = SoftMaxBackward(%2, %3: f32[4,8]); "
     "%5: f32[4,8] = Multiply(%4, %6: f32[1])",
     "[rows_backward_elementwise: 1,2,3]",
     "%2: f32[4,8] = Multiply(%0: f32[4,8], %1: f32[4,8]); %4: f32[4,8] = SoftMaxBackward(%3: f32[4,8], %2)",
     "[single_op: 1] [single_op: 2]"},
    {"resample_elementwise",
     "%1: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); %2: f32[1,2,8,8] = Interpolate(%1) {mode=nearest, scales=[2,2], "
     "data_format=NCX}; %4: f32[1,2,8,8] = Add(%2, %3: f32[1,2,8,8])",
     "[resample_elementwise: 1,2,3]",
     "%1: f32[1,2,4,4] = SoftMax(%0: f32[1,2,4,4]); %2: f32[1,2,8,8] = Interpolate(%1) {mode=nearest, scales=[2,2], "
     "data_format=NCX}",
     "[single_op: 1] [single_op: 2]"},
    {"reduction_elementwise",
     "%2: f32[4,8] = Multiply(%0: f32[4,8], %1: f32[4,8]); %3: f32[4] = ReduceSum(%2) {axes=[1]}; %4: f32[4] = "
     "Sigmoid(%3)",
     "[reduction_elementwise: 1,2,3]", "%3: f32[4] = ReduceSum(%2: f32[4,8]) {axes=[1]}; %4: f32[4] = SoftMax(%3) {axis=0}",
     "[single_op: 1] [single_op: 2]"},
    {"int8_matmul_conv_post_ops",
     "%2: f32[4,4] = Dequantize(%0: s8[4,4]) {scales=[1]}; %3: f32[4,4] = Dequantize(%1: s8[4,4]) {scales=[1]}; "
     "%4: f32[4,4] = MatMul(%2, %3); %5: f32[4,4] = ReLU(%4); %6: s8[4,4] = Quantize(%5) {scales=[1]}",
     "[int8_matmul_conv_post_ops: 1,2,3,4,5]",
     // Weights that are not quantized.
     "%2: f32[4,4] = Dequantize(%0: s8[4,4]) {scales=[1]}; %4: f32[4,4] = MatMul(%2, %3: f32[4,4]); %5: f32[4,4] = "
     "ReLU(%4)",
     "[single_op: 1] [matmul_conv_post_ops: 2,3]"},
    {"conv_swish_post_ops",
     "%2: f32[1,2,4,4] = Convolution(%0: f32[1,2,4,4], %1: f32[2,2,1,1])" CONV "; %3: f32[1,2,4,4] = Sigmoid(%2); "
     "%4: f32[1,2,4,4] = Multiply(%2, %3)",
     "[conv_swish_post_ops: 1,2,3]",
     // The sigmoid is multiplied with something else, and the convolution's result is needed twice.
     "%2: f32[1,2,4,4] = Convolution(%0: f32[1,2,4,4], %1: f32[2,2,1,1])" CONV "; %3: f32[1,2,4,4] = Sigmoid(%2); "
     "%4: f32[1,2,4,4] = Multiply(%9: f32[1,2,4,4], %3); %5: f32[1,2,4,4] = SoftMax(%2)",
     "[single_op: 1] [elementwise_chain: 2,3] [single_op: 4]"},
    {"matmul_conv_post_ops",
     "%2: f32[4,4] = MatMul(%0: f32[4,4], %1: f32[4,4]); %4: f32[4,4] = BiasAdd(%2, %3: f32[4]); %5: f32[4,4] = "
     "GELU(%4)",
     "[matmul_conv_post_ops: 1,2,3]",
     "%2: f32[4,4] = MatMul(%0: f32[4,4], %1: f32[4,4]); %3: f32[4,4] = ReLU(%2); %4: f32[4,4] = SoftMax(%2)",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
    {"elementwise_chain", "%1: f32[4] = Abs(%0: f32[4]); %2: f32[4] = Exp(%1); %3: f32[4] = Add(%2, %1)",
     "[elementwise_chain: 1,2,3]",
     "%1: f32[4] = Abs(%0: f32[4]); %2: f32[4] = Reorder(%1); %3: f32[4] = Add(%2, %9: f32[4])",
     "[single_op: 1] [single_op: 2] [single_op: 3]"},
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
            "[max_pool_backward_elementwise: 1,2,3]");
  EXPECT_EQ(partition_text("%4: f32[1,2,8,8] = MaxPoolIndicesBackward(%2: f32[1,2,4,4], %3: s64[1,2,4,4])" SHAPE
                           "; %6: f32[1,2,8,8] = ReLUBackward(%5: f32[1,2,8,8], %4); %7: f32[2] = BiasAddBackward(%6) "
                           "{data_format=NCX}"),
            "[pool_backward_reduction: 1,2,3]");
  EXPECT_EQ(partition_text("%2: f32[1,2,3,5] = Multiply(%0: f32[1,2,3,5], %1: f32[1]); %3: f32[1,2,8,8] = "
                           "AdaptiveAvgPoolBackward(%2)" SHAPE "; %5: f32[1,2,8,8] = Add(%3, %4: f32[1,2,8,8])"),
            "[avg_pool_backward_elementwise: 1,2,3]");
  EXPECT_EQ(partition_text("%1: f32[1,2,8,8] = ReLU(%0: f32[1,2,8,8]); %2: f32[1,2,3,5] = AdaptiveAvgPool(%1) "
                           "{sizes=[3,5], data_format=NCX}; %3: f32[1,2,3,5] = Abs(%2)"),
            "[pool_elementwise: 1,2,3]");
  EXPECT_EQ(partition_text("%1: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); %2: f32[1,2,2,2], %4: s64[1,2,2,2] = "
                           "MaxPool(%1)" POOL "; %3: f32[1,2,2,2] = Abs(%2)"),
            "[pool_elementwise: 1,2,3]");
  // The softmax stands behind the gradient; what makes indices is no neighbour.
  EXPECT_EQ(partition_text("%4: f32[1,2,8,8] = MaxPoolIndicesBackward(%2: f32[1,2,4,4], %3: s64[1,2,4,4])" SHAPE
                           "; %6: f32[1,2,8,8] = SoftMax(%4) {axis=-1}"),
            "[single_op: 1] [single_op: 2]");
#undef SHAPE
}

TEST(pattern_table, every_pattern_has_a_case_and_a_text) {
  std::set<std::string_view> cases;
  for (const Case& c : kCases) cases.insert(c.pattern);
  for (const auto& pattern : all_patterns()) {
    EXPECT_TRUE(cases.count(pattern.name)) << pattern.name << " has no case here";
    EXPECT_FALSE(pattern.text.empty()) << pattern.name;
  }
}

}  // namespace
}  // namespace partita::test
