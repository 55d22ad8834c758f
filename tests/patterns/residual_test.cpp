// SPDX-License-Identifier: Apache-2.0
// Stages of a ResNet: residual blocks in a row are one partition with all that feeds them.
#include <gtest/gtest.h>

#include <string>

#include "passes/claims.hpp"
#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

constexpr const char* kConvolution =
    " {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX}";

/// The text of a stage, operator by operator; values have the numbers of the operators that make them.
class Stage {
 public:
  explicit Stage(bool quantized) : quantized_(quantized) {}

  /// The first block has a convolution on its way past.
  std::string text(int blocks) {
    int src = quantized_ ? image("Dequantize(%0: u8[1,2,8,8]) {scales=[0.1]}") : 0;
    for (int b = 0; b < blocks; ++b) {
      const int past = b == 0 ? rounded(convolution(src)) : src;
      int at = src;
      for (int c = 0; c < 2; ++c) at = rounded(image(str("ReLU(%", convolution(at), ")")));
      src = rounded(image(str("ReLU(%", image(str("Add(%", convolution(at), ", %", past, ")")), ")")));
    }
    return text_;
  }

 private:
  int op(std::string_view type, const std::string& what) {
    text_ += str(text_.empty() ? "" : "; ", "%", ++last_, ": ", type, " = ", what);
    return last_;
  }
  int image(const std::string& what) { return op("f32[1,2,8,8]", what); }
  int rounded(int x) {
    if (!quantized_) return x;
    return image(str("Dequantize(%", op("u8[1,2,8,8]", str("Quantize(%", x, ") {scales=[0.1]}")), ") {scales=[0.1]}"));
  }
  int convolution(int x) {
    std::string weights = str("%", 1000 + last_, quantized_ ? ": s8[2,2,1,1]" : ": f32[2,2,1,1]");
    if (quantized_) weights = str("%", op("f32[2,2,1,1]", str("Dequantize(", weights, ") {scales=[0.1]}")));
    return image(str("Convolution(%", x, x == 0 ? ": f32[1,2,8,8]" : "", ", ", weights, ")", kConvolution));
  }

  const bool quantized_;
  std::string text_;
  int last_ = 0;
};

TEST(residual_blocks, a_stage_is_one_partition_with_the_weights_that_it_alone_reads) {
  for (const bool quantized : {false, true})
    for (int blocks = 1; blocks <= 8; ++blocks) {
      const graph g = final_graph_of(Stage(quantized).text(blocks));
      const auto partitions = partition_graph(*g.form(), {});
      ASSERT_EQ(partitions.size(), 1u) << blocks << (quantized ? " quantized" : "") << " blocks";
      EXPECT_EQ(partitions[0].pattern, "residual_blocks");
      EXPECT_EQ(partitions[0].outputs.size(), 1u);
    }
}

TEST(residual_blocks, a_deeper_stage_is_cut_between_blocks) {
  EXPECT_EQ(partition_graph(*final_graph_of(Stage(false).text(9)).form(), {}).size(), 2u);
  EXPECT_EQ(partition_graph(*final_graph_of(Stage(true).text(16)).form(), {}).size(), 2u);
}

TEST(residual_blocks, inner_values_may_be_results_of_the_graph) {
  for (const bool quantized : {false, true}) {
    const std::vector<op> stage = ops_of(Stage(quantized).text(3));
    for (const op& inner : stage) {
      graph g;
      for (const op& o : stage) ASSERT_TRUE(g.add_op(o).ok());
      ASSERT_TRUE(g.add_op(op(500, OpKind::End).add_input(inner.outputs[0])).ok());
      ASSERT_TRUE(g.finalize().ok());
      const auto partitions = partition_graph(*g.form(), {});
      ASSERT_EQ(partitions.size(), 1u) << "End of " << inner.id << (quantized ? " quantized" : "");
      EXPECT_EQ(partitions[0].outputs.size(), inner.id == stage.back().id ? 1u : 2u);
    }
  }
}

TEST(residual_blocks, inner_values_are_no_inputs_of_others) {
  const std::string block = Stage(false).text(1);
  EXPECT_EQ(partition_text(block + "; %21: f32[1,2,8,8] = Convolution(%3, %20: f32[2,2,1,1])" + kConvolution),
            "[single_op: 1] [convolution_neighbourhood: 2,3] [convolution_neighbourhood: 4,5] "
            "[convolution_neighbourhood: 6,7,8] [single_op: 9]");
}

TEST(residual_blocks, sums_of_other_tensors_are_no_blocks) {
  const std::string block = Stage(false).text(1);
  EXPECT_EQ(partition_text(block + "; %20: f32[1,2,8,8] = Abs(%8); %22: f32[1,2,8,8] = Add(%20, %21: f32[1,2,8,8])"),
            "[residual_blocks: 1,2,3,4,5,6,7,8,9,10]");
  EXPECT_EQ(partition_text(block + "; %21: f32[1,2,8,8] = Convolution(%8, %20: f32[2,2,1,1])" + kConvolution +
                           "; %23: f32[1,2,8,8] = Add(%21, %22: f32[1,2,8,8])"),
            "[residual_blocks: 1,2,3,4,5,6,7,8] [convolution_neighbourhood: 9,10]");
}

}  // namespace
}  // namespace partita::test
