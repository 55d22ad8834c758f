// SPDX-License-Identifier: Apache-2.0
// The matcher on its building blocks and on the hardest known sub-graphs.
#include <gtest/gtest.h>

#include <algorithm>

#include "passes/match.hpp"
#include "passes/patterns/sets.hpp"
#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::patterns {
namespace {

using test::final_graph_of;

/// Ids of the operators the pattern finds at the first operator where it matches, sorted; or the reason of the best
/// try.
std::string found(const Pattern& pattern, std::string_view text) {
  const graph g = final_graph_of(text);
  const FinalGraph& form = *g.form();
  Groups groups(form.ops.size());
  Refusal best;
  for (int start : form.order) {
    Match match;
    Refusal refusal;
    if (match_at(form, pattern, start, groups, match, &refusal)) {
      std::vector<uint64_t> ids;
      for (int i : match.ops) ids.push_back(form.ops[static_cast<size_t>(i)].id);
      std::sort(ids.begin(), ids.end());
      std::string text_ids;
      for (uint64_t id : ids) text_ids += str(text_ids.empty() ? "" : ",", id);
      return text_ids;
    }
    if (best.reason.empty() || refusal.matched > best.matched) best = refusal;
  }
  return best.reason;
}

TEST(matcher, follows_a_chain) { EXPECT_EQ(found({"p", "", op(Abs) >> op(Exp)}, "%1 = Abs(%0); %2 = Exp(%1)"), "1,2"); }

TEST(matcher, says_what_it_missed) {
  EXPECT_EQ(found({"p", "", op(Abs) >> op(Exp)}, "%1 = Abs(%0); %2 = Log(%1)"),
            "no Exp reads the result of op 1 (Abs)");
  const Pattern twice{
      .name = "p", .text = "", .chain = op(Abs) >> bind("x") >> op(Exp), .with = {same("x") >> op(Exp)}};
  EXPECT_EQ(found(twice, "%1 = Abs(%0); %2 = Exp(%1)"), "no other Exp reads the result of op 1 (Abs)");
}

TEST(matcher, optional_items_are_taken_where_they_are) {
  const Pattern p{"p", "", op(Abs) >> maybe(ReLU) >> op(Exp)};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1)"), "1,2");
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = ReLU(%1); %3 = Exp(%2)"), "1,2,3");
}

TEST(matcher, repetition_gives_back_what_the_rest_needs) {
  const Pattern p{"p", "", op(Abs) >> many(kUnary) >> op(Exp)};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1); %3 = ReLU(%2); %4 = Exp(%3)"), "1,2,3,4");
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = ReLU(%1); %3 = Exp(%2); %4 = Exp(%3); %5 = Tanh(%4)"), "1,2,3,4");
}

TEST(matcher, a_chain_stops_before_a_value_that_is_used_elsewhere) {
  const Pattern p{"p", "", op(Abs) >> some(kUnary)};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1); %3 = ReLU(%2); %4 = Add(%2, %9)"), "1,2");
}

TEST(matcher, an_inner_value_used_outside_is_a_refusal_with_both_operators) {
  EXPECT_EQ(found({"p", "", op(Abs) >> op(Exp)}, "%1 = Abs(%0); %2 = Exp(%1); %3 = Log(%1)"),
            "the result of op 1 (Abs) is also used by op 3 (Log)");
}

TEST(matcher, a_whole_match_is_refused_for_its_own_reason) {
  // Both ways to part the three operators between the repetitions are tried, and what might follow each.
  const Pattern p{"p", "", op(Abs) >> many(ReLU) >> many(many(ReLU) >> op(Exp))};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = ReLU(%1); %3 = ReLU(%2); %4 = Log(%1)"),
            "the result of op 1 (Abs) is also used by op 4 (Log)");
}

TEST(matcher, an_end_keeps_an_inner_value_inside) {
  const Pattern p{"p", "", op(Abs) >> op(Exp)};
  graph g;
  for (const auto& o : test::ops_of("%1: f32[4] = Abs(%0: f32[4]); %2: f32[4] = Exp(%1)"))
    ASSERT_TRUE(g.add_op(o).ok());
  ASSERT_TRUE(g.add_op(partita::op(3, End).add_input(logical_tensor(1, Dtype::f32, Dims{4}))).ok());
  ASSERT_TRUE(g.finalize().ok());
  Match match;
  EXPECT_TRUE(match_at(*g.form(), p, 0, Groups(3), match, nullptr));
}

TEST(matcher, inner_outputs_allow_it) {
  const Pattern p{.name = "p", .text = "", .chain = op(Abs) >> op(Exp), .inner_outputs = true};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1); %3 = Log(%1)"), "1,2");
}

TEST(matcher, sides_are_matched_against_the_data_flow) {
  const Pattern p{"p", "", op(MatMul).in(0, op(Dequantize)).in(1, maybe(Quantize) >> op(Dequantize))};
  const std::string dq = " {scales=[1], zps=[0]}; ";
  EXPECT_EQ(found(p, "%2: f32[4,4] = Dequantize(%0: s8[4,4])" + dq + "%3: f32[4,4] = Dequantize(%1: s8[4,4])" + dq +
                         "%4 = MatMul(%2, %3)"),
            "1,2,3");
}

TEST(matcher, a_chain_enters_at_the_port_that_is_asked_for) {
  const Pattern p{"p", "", op(ReLUBackward) >> op(BatchNormTrainingBackward).at(1)};
  const std::string head = "%2 = ReLUBackward(%0: f32[2,3,4,4], %1: f32[2,3,4,4]); ";
  EXPECT_EQ(
      found(p, head +
                   "%8, %9, %10 = BatchNormTrainingBackward(%3: f32[2,3,4,4], %2, %4: f32[3], %5: f32[3], %6: f32[3]) "
                   "{epsilon=0.1, data_format=NCX}"),
      "1,2");
  EXPECT_NE(
      found(p, head +
                   "%8, %9, %10 = BatchNormTrainingBackward(%2, %3: f32[2,3,4,4], %4: f32[3], %5: f32[3], %6: f32[3]) "
                   "{epsilon=0.1, data_format=NCX}"),
      "1,2");
}

TEST(matcher, a_value_used_twice_is_tied_by_its_name) {
  const Pattern swish{"p", "", op(Abs) >> bind("x") >> op(Sigmoid) >> op(Multiply).other(same("x"))};
  EXPECT_EQ(found(swish, "%1 = Abs(%0); %2 = Sigmoid(%1); %3 = Multiply(%1, %2)"), "1,2,3");
  EXPECT_EQ(found(swish, "%1 = Abs(%0); %2 = Sigmoid(%1); %3 = Multiply(%2, %1)"), "1,2,3");
  EXPECT_EQ(found(swish, "%1 = Abs(%0); %2 = Sigmoid(%1); %3 = Multiply(%9, %2)"),
            "two places must read one value `x` and do not");
}

TEST(matcher, alternatives_are_tried_in_order) {
  const Pattern p{"p", "", op(Abs) >> either({op(Exp) >> op(Log), op(Exp) >> op(Tanh)}) >> op(ReLU)};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1); %3 = Tanh(%2); %4 = ReLU(%3)"), "1,2,3,4");
}

TEST(matcher, takes_in_what_stands_between) {
  const Pattern p{.name = "p", .text = "", .chain = op(Abs) >> op(Add), .inner_outputs = true};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Log(%1); %3 = Add(%1, %2)"), "1,2,3");
}

TEST(matcher, a_group_that_would_depend_on_itself_is_refused) {
  const Pattern p{.name = "p", .text = "", .chain = op(Abs) >> op(Add), .inner_outputs = true};
  EXPECT_EQ(found(p, "%1: f32[4,4] = Abs(%0: f32[4,4]); %2: f32[4,4] = MatMul(%1, %1); %3: f32[4,4] = Add(%1, %2)"),
            "the group would depend on itself through op 2 (MatMul)");
}

TEST(matcher, the_content_of_a_shape_input_comes_from_outside) {
  const Pattern p{.name = "p", .text = "", .chain = op(Add) >> op(AvgPoolBackward).at(1), .inner_outputs = true};
  EXPECT_EQ(found(p,
                  "%2: s32[4] = Add(%0: s32[4], %1: s32[4]); %4: f32[1,2,8,8] = AvgPoolBackward(%3: f32[1,2,4,4], %2) "
                  "{strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, data_format=NCX}"),
            "the partition must be given the content of input 1 of op 2 (AvgPoolBackward)");
}

TEST(matcher, groups_that_would_depend_on_each_other_are_found) {
  const graph g = final_graph_of("%1 = Abs(%0); %2 = Exp(%10); %3 = Add(%1, %2); %4 = Multiply(%1, %2)");
  const FinalGraph& form = *g.form();
  // {Abs, Multiply} is claimed; {Exp, Add} reads Abs and feeds Multiply.
  Groups groups(form.ops.size());
  groups.claim(form, {0, 3});
  EXPECT_TRUE(between(form, {1, 2}, groups).in_a_group);
  EXPECT_FALSE(between(form, {2}, groups).in_a_group);
}

TEST(matcher, names_in_a_repeated_chain_belong_to_one_repetition) {
  const Pattern p{"p", "", op(Abs) >> many(bind("x") >> op(Exp) >> op(Add).other(same("x")))};
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1); %3 = Add(%2, %1); %4 = Exp(%3); %5 = Add(%4, %3)"), "1,2,3,4,5");
  EXPECT_EQ(found(p, "%1 = Abs(%0); %2 = Exp(%1); %3 = Add(%2, %1); %4 = Exp(%3); %5 = Add(%4, %1)"),
            "two places must read one value `x` and do not");
}

/// Gradients of one convolution: three operators read one diff_dst.
TEST(matcher, chains_are_tied_by_a_shared_gradient) {
  const Pattern p{.name = "conv_gradients",
                  .text = "",
                  .chain = op(ConvolutionBackwardData).in(0, bind("dy")),
                  .with = {same("dy") >> op(ConvolutionBackwardWeights).at(1), same("dy") >> maybe(BiasAddBackward)}};
  const std::string attrs =
      " {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX, ";
  const std::string data = "%3: f32[1,2,4,4] = ConvolutionBackwardData(%0: f32[1,3,4,4], %1: f32[3,2,1,1])" + attrs +
                           "dst_shape=[1,2,4,4]}; ";
  const std::string weights =
      "%4: f32[3,2,1,1] = ConvolutionBackwardWeights(%2: f32[1,2,4,4], %0)" + attrs + "weights_shape=[3,2,1,1]}; ";
  EXPECT_EQ(found(p, data + weights), "1,2");
  EXPECT_EQ(found(p, data + weights + "%5 = BiasAddBackward(%0) {data_format=NCX}"), "1,2,3");
  EXPECT_EQ(found(p, data), "no ConvolutionBackwardWeights reads tensor 0 at input 1");
}

/// Inputs of products by what is summed, wherever they stand and however they are spelled.
TEST(matcher, inputs_of_products_are_called_by_what_is_summed) {
  const Pattern p{.name = "both",
                  .text = "",
                  .chain = op(MatMul).in(kSummedColumns, bind("dy")),
                  .with = {same("dy") >> op(MatMul).at(kSummedRows)},
                  .inner_outputs = true};
  const std::string columns[] = {"%3: f32[4,8] = MatMul(%0: f32[4,6], %1: f32[6,8]); ",
                                 "%3: f32[4,8] = MatMul(%0: f32[4,6], %1: f32[8,6]) {transpose_b=true}; ",
                                 "%3: f32[8,4] = MatMul(%1: f32[8,6], %0: f32[4,6]) {transpose_b=true}; ",
                                 "%3: f32[8,4] = MatMul(%1: f32[6,8], %0: f32[4,6]) {transpose_a=true, "
                                 "transpose_b=true}; "};
  const std::string rows[] = {"%4: f32[6,8] = MatMul(%0, %2: f32[4,8]) {transpose_a=true}",
                              "%4: f32[6,8] = MatMul(%0, %2: f32[8,4]) {transpose_a=true, transpose_b=true}",
                              "%4: f32[8,6] = MatMul(%2: f32[8,4], %0)",
                              "%4: f32[8,6] = MatMul(%2: f32[4,8], %0) {transpose_a=true}"};
  for (const std::string& first : columns)
    for (const std::string& second : rows) EXPECT_EQ(found(p, first + second), "1,2") << first << second;
  EXPECT_EQ(found(p, columns[0] + "%4: f32[4,9] = MatMul(%0, %2: f32[6,9])"),
            "no MatMul reads tensor 0 and sums over its rows");
  EXPECT_EQ(found(p, "%4: f32[6,9] = MatMul(%0: f32[4,6], %2: f32[4,9]) {transpose_a=true}"),
            "no input is left whose columns op 1 (MatMul) sums over");
}

/// Attention with a causal mask made of two GenIndex, a comparison and a Select.
TEST(matcher, finds_attention_with_a_causal_mask) {
  const Pattern p{
      .name = "attention",
      .text = "",
      .chain =
          op(MatMul) >> maybe(Multiply | Divide) >> bind("scores") >>
          maybe(op(Select).at(1).in(
              0,
              op(GreaterEqual).in(0, op(GenIndex).in(0, same("scores"))).in(1, op(GenIndex).in(0, same("scores"))))) >>
          op(SoftMax) >> op(MatMul).at(0)};
  const std::string head =
      "%2: f32[2,8,8] = MatMul(%0: f32[2,8,4], %1: f32[2,4,8]); %4: f32[2,8,8] = Divide(%2, %3: f32[1]); ";
  const std::string tail = "%10: f32[2,8,8] = SoftMax(%9) {axis=-1}; %12 = MatMul(%10, %11: f32[2,8,4])";
  EXPECT_EQ(found(p, head +
                         "%5: s32[2,8,8] = GenIndex(%4) {axis=-2}; %6: s32[2,8,8] = GenIndex(%4) {axis=-1}; "
                         "%7: boolean[2,8,8] = GreaterEqual(%5, %6); %9: f32[2,8,8] = Select(%7, %4, %8: f32[1]); " +
                         tail),
            "1,2,3,4,5,6,7,8");
  EXPECT_EQ(
      found(p, "%2: f32[2,8,8] = MatMul(%0: f32[2,8,4], %1: f32[2,4,8]); %9: f32[2,8,8] = Divide(%2, %3: f32[1]); " +
                   tail),
      "1,2,3,4");
}

/// Attention backward in its decomposed spelling: P = exp(S - stats); dV = P^T dO; dP = dO V^T; dS = P (dP - rowsum).
TEST(matcher, finds_attention_backward) {
  const Pattern p{.name = "attention_backward",
                  .text = "",
                  .chain = op(MatMul) >> op(Multiply | Divide) >> op(Subtract) >> op(Exp) >> bind("p") >>
                           op(Multiply).other(op(Subtract).in(0, op(MatMul).in(0, bind("do")))) >>
                           op(Multiply | Divide) >> bind("ds") >> op(MatMul),
                  .with = {same("do") >> op(MatMul).at(1), same("ds") >> op(MatMul)}};
  EXPECT_EQ(found(p,
                  "%2: f32[8,8] = MatMul(%0: f32[8,4], %1: f32[8,4]) {transpose_b=true}\n"
                  "%4: f32[8,8] = Divide(%2, %3: f32[1])\n"
                  "%6: f32[8,8] = Subtract(%4, %5: f32[8,1])\n"
                  "%7: f32[8,8] = Exp(%6)\n"
                  "%9: f32[8,4] = MatMul(%7, %8: f32[8,4]) {transpose_a=true}\n"
                  "%11: f32[8,8] = MatMul(%8, %10: f32[8,4]) {transpose_b=true}\n"
                  "%13: f32[8,8] = Subtract(%11, %12: f32[8,1])\n"
                  "%14: f32[8,8] = Multiply(%7, %13)\n"
                  "%15: f32[8,8] = Divide(%14, %3)\n"
                  "%16: f32[8,4] = MatMul(%15, %1)\n"
                  "%17: f32[8,4] = MatMul(%15, %0) {transpose_a=true}"),
            "1,2,3,4,5,6,7,8,9,10,11");
}

/// Two identity bottlenecks of a ResNet; the input of each is added to its result.
TEST(matcher, finds_residual_blocks) {
  const auto conv_relu = [] { return op(Convolution) >> op(ReLU); };
  const auto block = [&](std::string_view x) {
    return bind(x) >> conv_relu() >> conv_relu() >> op(Convolution) >> op(Add).other(same(x)) >> op(ReLU);
  };
  const Pattern p{.name = "resnet", .text = "", .chain = op(ReLU) >> block("x1") >> block("x2")};
  const std::string attrs =
      " {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX}; ";
  std::string text = "%1: f32[1,2,4,4] = ReLU(%0: f32[1,2,4,4]); ";
  int last = 1;
  for (int b = 0; b < 2; ++b) {
    const int start = last;
    for (int c = 0; c < 3; ++c) {
      text += str("%", last + 1, ": f32[1,2,4,4] = Convolution(%", last, ", %", 100 + last, ": f32[2,2,1,1])", attrs);
      ++last;
      if (c < 2) text += str("%", last + 1, ": f32[1,2,4,4] = ReLU(%", last, "); "), ++last;
    }
    text += str("%", last + 1, ": f32[1,2,4,4] = Add(%", start, ", %", last, "); %", last + 2,
                ": f32[1,2,4,4] = ReLU(%", last + 1, "); ");
    last += 2;
  }
  EXPECT_EQ(found(p, text), "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15");
}

TEST(matcher, a_wrong_way_through_sums_is_gone_once) {
  // Thirty sums lead away from the Exp. Were the inputs of each swapped, the way behind it would be gone twice as
  // often.
  std::string text;
  for (int i = 0; i < 30; ++i) text += str("%", i + 1, " = Add(%", i, ", %", 100 + i, "); ");
  text += "%50 = Exp(%3)";
  const Pattern p{.name = "p", .text = "", .chain = many(op(Add).other(many(Abs))) >> op(Exp), .inner_outputs = true};
  EXPECT_EQ(found(p, text), "1,2,3,31");
}

TEST(matcher, gives_up_on_a_graph_made_to_be_slow) {
  // Every Add reads one value twice: without a limit the number of ways through grows as 2^n.
  std::string text;
  for (int i = 0; i < 40; ++i) text += str("%", i + 1, " = Add(%", i, ", %", i, "); ");
  const Pattern p{"p", "", many(Add) >> op(Exp)};
  EXPECT_FALSE(found(p, text).empty());
}

}  // namespace
}  // namespace partita::patterns
