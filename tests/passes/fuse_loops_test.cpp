// SPDX-License-Identifier: Apache-2.0
// Which steps fuse_loops joins, and what their expressions become.
#include "passes/optimize/fuse_loops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

using testing::ElementsAre;

constexpr std::string_view kAverage =
    "AvgPoolBackward(%1) {src_shape=[1,1,4,4], strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], "
    "exclude_pad=true, data_format=NCX}";
constexpr std::string_view kMaximum =
    "MaxPoolBackward(%9: f32[1,1,4,4], %1) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], "
    "data_format=NCX}";

TEST(fuse_loops, a_chain_becomes_one_loop) {
  EXPECT_THAT(fused_steps("%1 = ReLU(%0: f32[4]); %2 = Exp(%1); %3 = Add(%2, %5: f32[4])"),
              ElementsAre("ReLU 1 + Exp 2 + Add 3 | each: %0 = load in0; %1 = constant 0; %2 = max %0 %1; %3 = exp %2; "
                          "%4 = load in1; %5 = add %3 %4; store out0 %5"));
}

TEST(fuse_loops, a_walk_ends_where_two_take_less_time) {
  std::string chain = "%1 = ReLU(%0: f32[4])", sums = "%1 = Add(%0: f32[4], %1000: f32[4])";
  for (int i = 1; i < 100; ++i) {
    chain += str("; %", i + 1, " = ReLU(%", i, ")");
    sums += str("; %", i + 1, " = Add(%", i, ", %", 1000 + i, ": f32[4])");
  }
  EXPECT_THAT(fused_steps(chain), ElementsAre(testing::StartsWith("ReLU 1 + "), testing::StartsWith("ReLU 65 + ")));
  EXPECT_EQ(fused_steps(sums).size(), 2u);
}

TEST(fuse_loops, a_function_whose_own_result_is_f32_stays_accurate) {
  EXPECT_THAT(fused_steps("%1 = Exp(%0: f32[4]); %2: bf16 = TypeCast(%1)"),
              ElementsAre("Exp 1 + TypeCast 2 | each: %0 = load in0; %1 = exp %0; store out0 %1"));
  EXPECT_THAT(fused_steps("%1 = Elu(%0: bf16[4]) {alpha=1}"),
              ElementsAre(testing::AllOf(testing::HasSubstr("expm1 "), testing::Not(testing::HasSubstr("narrow")))));
}

/// Both copies are the same operator behind the same softmax.
TEST(fuse_loops, what_was_refused_of_an_operator_is_refused_for_that_place_alone) {
  const Partition p = one_partition(final_graph_of("%1 = SoftMax(%0: f32[4,8]); %2 = Concat(%1, %1) {axis=1}"));
  Program program = lowered(p, ports_of(p));
  ASSERT_EQ(program.steps.size(), 3u);
  fuse_loops(program, [](const Problem& joined, const Problem&) { return joined.out.back().offset != 0; });
  ASSERT_EQ(program.steps.size(), 2u);
}

TEST(fuse_loops, a_softmax_is_as_narrow_as_its_own_result_whatever_is_behind) {
  const auto narrow_steps = [](const std::string& text) {
    const Partition p = one_partition(final_graph_of(text));
    Program program = lowered(p, ports_of(p));
    fuse_loops(program, [](const Problem&, const Problem&) { return true; });
    std::vector<bool> narrow;
    for (const Step& step : program.steps) narrow.push_back(step.problem.narrow);
    return narrow;
  };
  EXPECT_THAT(narrow_steps("%1: bf16 = SoftMax(%0: f32[4,8]); %2: f32 = TypeCast(%1)"), ElementsAre(true));
  EXPECT_THAT(narrow_steps("%1 = SoftMax(%0: f32[4,8]); %2: bf16 = TypeCast(%1)"), ElementsAre(false));
  EXPECT_THAT(narrow_steps("%1 = LogSoftmaxBackward(%0: f16[4,8], %9: f16[4,8])"), ElementsAre(true));
}

TEST(fuse_loops, narrow_values_between_are_rounded_to_their_type) {
  EXPECT_THAT(fused_steps("%1 = Exp(%0: bf16[4]); %2 = Tanh(%1)"),
              ElementsAre("Exp 1 + Tanh 2 | each: %0 = load in0; %1 = exp narrow %0; %2 = cast bf16 %1; "
                          "%3 = tanh narrow %2; store out0 %3"));
}

TEST(fuse_loops, quantized_values_between_are_saturated) {
  EXPECT_THAT(
      fused_steps(
          "%1: s8 = Quantize(%0: f32[4]) {scales=[0.5], zps=[1]}; %2: f32 = Dequantize(%1) {scales=[0.5], zps=[1]}"),
      ElementsAre("Quantize 1 + Dequantize 2 | each: %0 = load in0; %1 = constant 0.5; %2 = div %0 %1; "
                  "%3 = round %2; %4 = constant 1; %5 = add %3 %4; %6 = cast s8 %5; %7 = sub %6 %4; "
                  "%8 = mul %7 %1; store out0 %8"));
}

TEST(fuse_loops, a_pooling_takes_the_loops_in_front_behind_or_both) {
  const std::string average(kAverage), maximum(kMaximum);
  EXPECT_THAT(fused_steps("%1 = Abs(%0: f32[1,1,2,2]); %2 = " + average),
              ElementsAre("Abs 1 + AvgPoolBackward 2 | in front: %0 = load in1; %1 = abs %0"));
  EXPECT_THAT(
      fused_steps("%2 = AvgPoolBackward(%1: f32[1,1,2,2]" + average.substr(average.find(')')) + "; %3 = Abs(%2)"),
      ElementsAre("AvgPoolBackward 1 + Abs 2 | behind: %0 = skeleton; %1 = abs %0; store out0 %1"));
  EXPECT_THAT(fused_steps("%0 = Exp(%8: f32[1,1,2,2]); %1 = Abs(%0); %2 = " + maximum + "; %3 = ReLUBackward(%9, %2)"),
              ElementsAre("Exp 1 + Abs 2 + MaxPoolBackward 3 + ReLUBackward 4 | in front: %0 = load in2; %1 = exp %0; "
                          "%2 = abs %1 | behind: %0 = skeleton; %1 = load in0; %2 = constant 0; %3 = gt %1 %2; "
                          "%4 = select %3 %0 %2; store out0 %4"));
}

TEST(fuse_loops, a_pooling_without_a_batch_takes_the_loops_around_it) {
  EXPECT_THAT(fused_steps("%1 = Abs(%0: f32[2,4,4]); %2: f32[2,2,2] = MaxPool(%1) {strides=[2,2], kernel=[2,2], "
                          "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}; %3 = Exp(%2); "
                          "%5 = Add(%3, %4: f32[2,1,1])"),
              ElementsAre("Abs 1 + MaxPool 2 + Exp 3 + Add 4 | in front: %0 = load in1; %1 = abs %0 | behind: "
                          "%0 = skeleton; %1 = exp %0; %2 = load in2; %3 = add %1 %2; store out0 %3"));
}

TEST(fuse_loops, a_forward_pooling_takes_the_loop_behind_it) {
  EXPECT_THAT(fused_steps("%1 = MaxPool(%0: bf16[1,1,4,4]) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], "
                          "pads_end=[0,0], data_format=NCX}; %2: f32 = TypeCast(%1)"),
              ElementsAre("MaxPool 1 + TypeCast 2 | behind: %0 = skeleton; %1 = cast bf16 %0; store out0 %1"));
}

TEST(fuse_loops, a_loop_that_also_feeds_the_source_stays_outside_of_a_pooling) {
  EXPECT_THAT(fused_groups("%1 = Abs(%0: f32[1,1,4,4]); %2 = MaxPoolBackward(%1, %1) {strides=[1,1], kernel=[1,1], "
                           "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}"),
              ElementsAre("Abs 1", "MaxPoolBackward 2"));
}

TEST(fuse_loops, a_gradient_that_is_needed_elsewhere_stays_outside_of_a_pooling) {
  const std::string text = "%1 = Abs(%0: f32[1,1,2,2]); %2 = " + std::string(kAverage);
  EXPECT_THAT(fused_groups(text, {1}), ElementsAre("Abs 1", "AvgPoolBackward 2"));
}

TEST(fuse_loops, an_inner_value_that_is_an_output_is_stored_in_the_same_walk) {
  EXPECT_THAT(fused_steps("%1 = Exp(%0: f16[4]); %2 = Tanh(%1)", {1}),
              ElementsAre("Exp 1 + Tanh 2 | each: %0 = load in0; %1 = exp narrow %0; store out0 %1; "
                          "%3 = cast f16 %1; %4 = tanh narrow %3; store out1 %4"));
}

TEST(fuse_loops, a_value_that_two_loops_read_is_made_once) {
  EXPECT_THAT(fused_steps("%1 = Exp(%0: f32[4]); %2 = Abs(%1); %3 = Tanh(%1)"),
              ElementsAre("Exp 1 + Abs 2 + Tanh 3 | each: %0 = load in0; %1 = exp %0; %2 = abs %1; store out0 %2; "
                          "%4 = tanh %1; store out1 %4"));
}

TEST(fuse_loops, one_loop_reads_two_results_of_another) {
  EXPECT_THAT(fused_steps("%1 = Add(%0: f32[4], %9: f32[1]); %2 = Sigmoid(%1); %3 = Multiply(%1, %2)", {2}),
              ElementsAre("Add 1 + Sigmoid 2 + Multiply 3 | each: %0 = load in0; %1 = load in1; %2 = add %0 %1; "
                          "%3 = sigmoid %2; store out0 %3; %5 = mul %2 %3; store out1 %5"));
}

TEST(fuse_loops, a_product_with_a_vector_takes_what_makes_the_matrix) {
  if (!generates_code()) GTEST_SKIP() << "without generated code products are left to oneDNN";
  EXPECT_THAT(fused_groups("%2: f32[40,64] = Dequantize(%1: s8[40,64]) {scales=[0.1]}; "
                           "%3: f32[1,40] = MatMul(%0: f32[1,64], %2) {transpose_b=true}; %4: f32[1,40] = Exp(%3)"),
              ElementsAre("Dequantize 1 + MatMul 2", "Exp 3"));
  EXPECT_THAT(fused_groups("%2: bf16[1,40] = MatMul(%0: bf16[1,64], %1: bf16[40,64]) {transpose_b=true}; "
                           "%3: bf16[1,40] = Exp(%2)"),
              ElementsAre("MatMul 1", "MatMul 1 + Exp 2"));
}

TEST(fuse_loops, loops_over_groups_of_an_axis_join_those_over_the_whole_axis) {
  const std::string dequantize =
      "%3: f16[4,96] = DynamicDequantize(%0: u4[4,96], %1: f16[4,3], %2: u8[4,3]) {qtype=per_group, "
      "group_shape=[1,32]}; ";
  EXPECT_THAT(fused_groups(dequantize + "%4: f32[4,96] = TypeCast(%3); %6: f32[4,96] = Multiply(%4, %5: f32[1,96])"),
              ElementsAre("DynamicDequantize 1 + TypeCast 2 + Multiply 3"));
  if (generates_code()) {  // without, products are left to oneDNN
    EXPECT_THAT(fused_groups(dequantize + "%5: f16[1,96] = MatMul(%4: f16[1,4], %3)"),
                ElementsAre("DynamicDequantize 1 + MatMul 2", "MatMul 2"));
  }
  // An axis is cut into groups of one length.
  EXPECT_THAT(fused_groups(dequantize + "%6: f16[4,96] = DynamicDequantize(%4: u4[4,96], %5: f16[4,2]) "
                                        "{qtype=per_group, group_shape=[1,48]}; %7: f16[4,96] = Add(%3, %6)"),
              ElementsAre("DynamicDequantize 2", "DynamicDequantize 1 + Add 3"));
  // Groups that are shorter than a vector.
  EXPECT_THAT(fused_groups("%2: f16[4,96] = DynamicDequantize(%0: u4[4,96], %1: f16[4,12]) {qtype=per_group, "
                           "group_shape=[1,8]}; %3: f32[4,96] = TypeCast(%2)"),
              ElementsAre("DynamicDequantize 1", "TypeCast 2"));
}

TEST(fuse_loops, products_with_many_vectors_or_a_small_matrix_stay_products) {
  const auto is_product = [](std::string_view text) {  // a loop would show what it does to each element
    return fused_steps(text) == std::vector<std::string>{"MatMul 1"};
  };
  const bool stays = !generates_code();
  EXPECT_EQ(is_product("%2: f32[1,64] = MatMul(%0: f32[1,40], %1: f32[64,40]) {transpose_b=true}"), stays);
  EXPECT_EQ(is_product("%2: f16[1,64] = MatMul(%0: f16[1,40], %1: f16[40,64])"), stays);
  EXPECT_TRUE(is_product("%2: f32[1,64] = MatMul(%0: f32[1,40], %1: f32[40,64])"));
  EXPECT_TRUE(is_product("%2: f32[2,64] = MatMul(%0: f32[2,40], %1: f32[64,40]) {transpose_b=true}"));
  EXPECT_TRUE(is_product("%2: f32[3,1,64] = MatMul(%0: f32[3,1,40], %1: f32[3,64,40]) {transpose_b=true}"));
}

TEST(fuse_loops, a_diamond_through_a_product_is_not_joined) {
  EXPECT_THAT(fused_groups("%1 = Abs(%0: f32[4,4]); %2 = MatMul(%1, %5: f32[4,4]); %3 = Add(%1, %2)"),
              ElementsAre("Abs 1", "MatMul 2", "Add 3"));
  EXPECT_THAT(
      fused_groups("%1 = Abs(%0: f32[4,4]); %2 = MatMul(%1, %5: f32[4,4]); %4 = MatMul(%2, %2); %3 = Add(%1, %4)"),
      ElementsAre("Abs 1", "MatMul 2", "MatMul 3", "Add 4"));
}

TEST(fuse_loops, loops_join_across_steps_that_need_neither) {
  EXPECT_THAT(fused_groups("%1 = Abs(%0: f32[4,4]); %2 = MatMul(%6: f32[4,4], %5: f32[4,4]); %3 = Add(%1, %2)"),
              ElementsAre("MatMul 2", "Abs 1 + Add 3"));
  EXPECT_THAT(
      fused_groups("%1 = Abs(%0: f32[4,4]); %2 = MatMul(%1, %5: f32[4,4]); %3 = Add(%1, %7: f32[4,4]); %4 = Exp(%2)"),
      ElementsAre("Abs 1 + Add 3", "MatMul 2", "Exp 4"));
}

TEST(fuse_loops, a_result_that_is_broadcast_or_turned_behind_is_not_joined) {
  EXPECT_THAT(fused_groups("%1 = Abs(%0: f32[1,4]); %2 = Add(%1, %5: f32[3,4])"), ElementsAre("Abs 1", "Add 2"));
  EXPECT_THAT(fused_groups("%1 = Abs(%0: f32[4,4]); %2 = StaticTranspose(%1) {order=[1,0]}; %3 = Add(%1, %2)"),
              ElementsAre("Abs 1", "StaticTranspose 2 + Add 3"));
}

TEST(fuse_loops, operands_that_are_broadcast_from_outside_do_not_hinder) {
  EXPECT_THAT(fused_steps("%1 = Add(%0: f32[3,4], %5: f32[4]); %2 = Multiply(%1, %5)"),
              ElementsAre("Add 1 + Multiply 2 | each: %0 = load in0; %1 = load in1; %2 = add %0 %1; %3 = mul %2 %1; "
                          "store out0 %3"));
}

TEST(fuse_loops, integers_that_become_floats_are_converted) {
  EXPECT_THAT(fused_steps("%1: s32 = GenIndex(%0: f32[2,3]) {axis=1}; %2: s32 = Add(%1, %5: s32[3]); "
                          "%3: boolean = GreaterEqual(%2, %1); %4: f32 = Select(%3, %0, %6: f32[1])"),
              ElementsAre("GenIndex 1 + Add 2 + GreaterEqual 3 + Select 4 | each: %0 = index axis 1; %1 = load in0; "
                          "%2 = add_s32 %0 %1; %3 = ge_s32 %2 %0; %4 = cast boolean %3; %5 = load in1; %6 = load in2; "
                          "%7 = select %4 %5 %6; store out0 %7"));
  EXPECT_THAT(fused_steps("%2: f32 = Add(%0: s32[4], %1: s32[4]); %3 = Abs(%2)"),
              ElementsAre("Add 1 + Abs 2 | each: %0 = load in0; %1 = to_f32 %0; %2 = load in1; %3 = to_f32 %2; "
                          "%4 = add %1 %3; %5 = abs %4; store out0 %5"));
  EXPECT_THAT(fused_steps("%2: s32 = Add(%0: f32[4], %1: f32[4]); %4: s32 = Subtract(%2, %3: s32[4])"),
              ElementsAre("Add 1 + Subtract 2 | each: %0 = load in0; %1 = load in1; %2 = add %0 %1; %3 = to_s32 %2; "
                          "%4 = load in2; %5 = sub_s32 %3 %4; store out0 %5"));
}

TEST(fuse_loops, the_parts_of_a_concatenation_are_written_by_what_makes_them) {
  EXPECT_THAT(
      fused_groups("%1 = Abs(%0: f32[2,3]); %2 = Exp(%5: f32[2,3]); %3 = Concat(%1, %2) {axis=1}; %4 = Tanh(%3)"),
      ElementsAre("Abs 1 + Concat 3", "Exp 2 + Concat 3", "Tanh 4"));
}

TEST(fuse_loops, what_a_step_would_compute_again_and_again_is_a_loop_of_its_own) {
  if (!generates_code()) GTEST_SKIP() << "only generated code takes expressions in front of these steps";
  const auto groups = [](const std::string& text) { return fused_groups(text, Target{.isa = machine_isa()}); };
  const auto pooled = [](const std::string& front, std::string_view windows) {
    return str(front, "; %9 = MaxPool(%1) {", windows, ", pads_begin=[0,0], pads_end=[0,0], data_format=NXC}");
  };
  constexpr std::string_view kApart = "kernel=[2,2], strides=[2,2]", kOverlap = "kernel=[3,3], strides=[2,2]";
  const std::string gelu = "%1 = GELU(%0: f32[1,9,9,16])", rectified = "%1 = ReLU(%0: f32[1,9,9,16])";
  EXPECT_THAT(groups(pooled(gelu, kOverlap)), ElementsAre("GELU 1", "MaxPool 2"));
  EXPECT_THAT(groups(pooled(gelu, kApart)), ElementsAre("GELU 1 + MaxPool 2"));
  EXPECT_THAT(groups(pooled(rectified, kOverlap)), ElementsAre("ReLU 1 + MaxPool 2"));

  const auto resampled = [](const std::string& front, int64_t size) {
    return str(front, "; %9 = Interpolate(%1) {mode=bilinear, sizes=[", size, ",", size,
               "], coordinate_transformation_mode=half_pixel, data_format=NXC}");
  };
  EXPECT_THAT(groups(resampled(gelu, 18)), ElementsAre("GELU 1", "Interpolate 2"));
  EXPECT_THAT(groups(resampled(rectified, 4)), ElementsAre("ReLU 1 + Interpolate 2"));

  const auto normalised = [](const std::string& front) {
    return front + "; %9 = GroupNorm(%1) {groups=4, keep_stats=false, use_affine=false, data_format=NXC}";
  };
  EXPECT_THAT(groups(normalised(gelu)), ElementsAre("GELU 1", "GroupNorm 2"));
  EXPECT_THAT(groups(normalised(rectified)), ElementsAre("ReLU 1 + GroupNorm 2"));
  // past the caches memory leaves time for it
  EXPECT_THAT(groups(normalised("%1 = GELU(%0: f32[64,2048,2048,16])")), ElementsAre("GELU 1 + GroupNorm 2"));
}

TEST(fuse_loops, stops_before_a_loop_has_too_many_operands) {
  std::string text = "%1 = Add(%0: f32[4], %101: f32[4])";
  for (int i = 2; i <= 100; ++i) text += str("; %", i, " = Add(%", i - 1, ", %", 100 + i, ": f32[4])");
  const Partition p = one_partition(final_graph_of(text));
  Program program = lowered(p, ports_of(p));
  fuse_loops(program, interpreter_joins);
  EXPECT_EQ(program.steps.size(), 2u);
  for (const Step& step : program.steps) EXPECT_LE(step.in.size(), 64u);
}

TEST(fuse_loops, stops_before_an_expression_is_too_long) {
  std::string text = "%1 = Exp(%0: f32[4])";
  for (int i = 2; i <= 1200; ++i) text += str("; %", i, " = ", i % 2 ? "Exp" : "GELU", "(%", i - 1, ")");
  const Partition p = one_partition(final_graph_of(text));
  Program program = lowered(p, ports_of(p));
  fuse_loops(program, interpreter_joins);
  EXPECT_GT(program.steps.size(), 1u);
  EXPECT_LT(program.steps.size(), 20u);
  for (const Step& step : program.steps) EXPECT_LE(step.problem.back.code.size(), 512u);
}

/// Channels as many as rows and columns: only strides tell the axes apart.
TEST(fuse_loops, a_pooling_over_channels_last_in_memory_takes_the_loops_beside_it) {
  const std::string text =
      "%2 = Convolution(%0: f32[2,4,4,4], %1: f32[4,4,1,1]) {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], "
      "dilations=[1,1], data_format=NCX, weights_format=OIX}; %3 = Add(%2, %8: f32[1,4,1,1]); "
      "%4 = MaxPool(%3) {strides=[1,1], kernel=[3,3], pads_begin=[1,1], pads_end=[1,1], data_format=NCX}; "
      "%5 = Multiply(%4, %7: f32[4,1,1])";
  EXPECT_THAT(fused_groups(text), ElementsAre("Convolution 1", "Add 2 + MaxPool 3 + Multiply 4"));
}

/// A single channel lies beside the cells whatever names it.
TEST(fuse_loops, a_pooling_of_one_channel_that_is_named_last_takes_the_loops_beside_it) {
  const std::string windows = "strides=[1,2], kernel=[3,3], pads_begin=[1,1], pads_end=[1,1], data_format=";
  for (const char* format : {"NXC", "NCX"}) {
    const bool last = std::string_view(format) == "NXC";
    const std::string cells = last ? "f32[2,6,7,1]" : "f32[2,1,6,7]", made = last ? "f32[2,6,4,1]" : "f32[2,1,6,4]";
    const std::string text = str("%1 = Abs(%0: ", made, "); %2: ", cells, " = MaxPoolBackward(%9: ", cells, ", %1) {",
                                 windows, format, "}; %3 = Multiply(%2, %8: ", cells, ")");
    const Partition p = one_partition(final_graph_of(text));
    Program program = lowered(p, ports_of(p));
    fuse_loops(program, interpreter_joins);
    ASSERT_EQ(program.steps.size(), 1u) << text;
    EXPECT_TRUE(program.steps[0].problem.attrs.is(Attr::data_format, "NCX"));
    EXPECT_EQ(program.steps[0].problem.out[0].dims, (Dims{2, 1, 6, 7}));
  }
}

}  // namespace
}  // namespace partita::test
