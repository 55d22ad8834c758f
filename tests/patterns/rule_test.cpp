// SPDX-License-Identifier: Apache-2.0
// The rule behind the patterns: what it joins, why it does not, and its promises on random and on very large graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "passes/claims.hpp"
#include "passes/patterns/sets.hpp"
#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/linked_samples.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/sound.hpp"

namespace partita::test {
namespace {

using enum OpKind;

graph made_of(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops) EXPECT_TRUE(g.add_op(o).ok());
  const Status finalized = g.finalize();
  EXPECT_TRUE(finalized.ok()) << finalized.text();
  return g;
}

/// `count` sums in a row, each of the last one and a tensor from outside.
std::vector<op> sums(uint64_t count) {
  std::vector<op> ops;
  for (uint64_t i = 10; i < 10 + count; ++i)
    ops.push_back(op(i, Add)
                      .add_input(logical_tensor(i - 1, Dtype::f32, Dims{4}))
                      .add_input(logical_tensor(10000 + i, Dtype::f32, Dims{4}))
                      .add_output(logical_tensor(i, Dtype::f32, Dims{4})));
  return ops;
}

/// The reason not to join the operator of that id with what makes its input.
std::string reason(std::string_view text, uint64_t id) {
  const graph g = final_graph_of(text);
  std::vector<PatternNote> notes;
  (void)partition_graph(*g.form(), {}, &notes);
  for (const PatternNote& note : notes)
    if (note.pattern == kRule && note.op == id) return note.refusal.reason;
  return "none";
}

TEST(rule, names_the_operator_and_the_reason) {
  const std::string product = "%2: f32[4,4] = MatMul(%0: f32[4,4], %1: f32[4,4]); ";
  EXPECT_EQ(reason(product + "%3: f32[4,4] = ReLU(%2); %4: f32[4,4] = MatMul(%3, %1)", 3),
            "not with op 2 (ReLU): no pattern joins it with what is before it");
  EXPECT_EQ(reason(product + "%3: f32[4,4] = ReLU(%2); %4: f32[4,4] = MatMul(%3, %1); %5: f32[4,4] = Add(%3, %4)", 4),
            "not with op 2 (ReLU): it also waits for op 3 (MatMul), which another group computes before");
  EXPECT_EQ(reason(product + "%3: f32[4,4] = Wildcard(%2)", 2),
            "not with op 1 (MatMul): nothing is known of a Wildcard");
  EXPECT_EQ(reason(product + "%3: s8[4,4] = Quantize(%2) {scales=[1]}; %4: f32[4,4] = Dequantize(%3) {scales=[1]}", 3),
            "not with op 2 (Quantize): integers are smaller to hand over than what it makes of them");
  EXPECT_EQ(reason("%1: f32[4,4] = ReLU(%0: f32[4,4]); %2: f32[4,4] = MatMul(%1, %8: f32[4,4]); "
                   "%3: f32[4,4] = MatMul(%1, %9: f32[4,4])",
                   3),
            "not with op 1 (ReLU): its results are read by several groups");
  EXPECT_EQ(reason("%2: s32[4] = Add(%0: s32[4], %1: s32[4]); %4: f32[1,2,8,8] = AvgPoolBackward(%3: f32[1,2,4,4], "
                   "%2) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], exclude_pad=true, "
                   "data_format=NCX}",
                   2),
            "not with op 1 (Add): the content of this input must be known when it is compiled");
}

TEST(rule, what_one_group_reads_is_not_said_to_have_several_readers) {
  std::vector<op> ops = sums(500);
  for (uint64_t i = 1000; i < 1020; ++i)
    ops.push_back(op(i, Exp)
                      .add_input(logical_tensor(i - 1, Dtype::f32, Dims{4}))
                      .add_output(logical_tensor(i, Dtype::f32, Dims{4})));
  ops.push_back(op(2000, MatMul)
                    .add_input(ops[499].outputs[0])
                    .add_input(ops[519].outputs[0])
                    .add_output(logical_tensor(2000, Dtype::f32, Dims{})));
  std::vector<PatternNote> notes;
  EXPECT_EQ(partition_graph(*made_of(ops).form(), {}, &notes).size(), 2u);
  std::erase_if(notes, [](const PatternNote& note) { return note.pattern != kRule; });
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].refusal.reason.ends_with(": a group has at most 512 operators")) << notes[0].refusal.reason;
}

TEST(rule, a_value_for_many_readers_ties_none) {
  std::string text = "%1: f32[1] = Abs(%0: f32[1])";
  for (int i = 0; i < 40; ++i) text += str("; %", 10 + i, ": f32[4] = Multiply(%1, %", 100 + i, ": f32[4])");
  const graph g = final_graph_of(text);
  EXPECT_EQ(partition_graph(*g.form(), {}).size(), 41u);
  EXPECT_EQ(reason(text, 2), "not with op 1 (Abs): too many operators read the value to fuse with all of them");
}

TEST(rule, an_end_belongs_to_what_it_reads_and_keeps_it) {
  std::vector<op> ops = ops_of("%1: f32[4] = Abs(%0: f32[4]); %2: f32[4] = Exp(%1)");
  ops.push_back(op(3, End).add_input(ops[0].outputs[0]));
  const graph g = made_of(ops);
  const auto partitions = partition_graph(*g.form(), {});
  ASSERT_EQ(partitions.size(), 1u);
  EXPECT_TRUE(partitions[0].supported);
  ASSERT_EQ(partitions[0].outputs.size(), 2u);
  EXPECT_EQ(partitions[0].outputs[0].id, 1u);
}

TEST(rule, what_only_a_later_group_reads_goes_there) {
  // The scaled momentum meets the gradient of the weights.
  EXPECT_EQ(partition_text("%2: f32[4] = Multiply(%0: f32[4], %1: f32[1]); "
                           "%5: f32[4,4] = MatMul(%3: f32[4,4], %4: f32[4,4]); %6: f32[4,4] = Add(%5, %2)"),
            "[matmul_neighbourhood: 1,2,3]");
}

TEST(rule, long_sums_are_one_group_up_to_the_limit) {
  for (uint64_t count : {70, 300, 512}) EXPECT_EQ(partition_graph(*made_of(sums(count)).form(), {}).size(), 1u);
  std::vector<PatternNote> notes;
  EXPECT_EQ(partition_graph(*made_of(sums(513)).form(), {}, &notes).size(), 2u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].refusal.reason, "not with op 521 (Add): a group has at most 512 operators");
}

TEST(rule, random_graphs_stay_sound) {
  size_t ops = 0, groups = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const graph g = made_of(random_graph(random, static_cast<int>(random.whole(2, 120))).ops);
    const auto partitions = partition_graph(*g.form(), {});
    EXPECT_EQ(unsoundness(*g.form(), partitions), "");
    for (const Partition& p : partitions) EXPECT_LE(p.ops.size(), kRuleLimit);
    ops += g.ops().size();
    groups += partitions.size();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_LT(groups * 2, ops) << "the rule joins too little for this test to mean much";
}

/// A random graph of 4x4 matrices: products, softmax, exponentials, sums, quantization, ends and unknown operators.
std::vector<op> random_matrices(Random& random, uint64_t count) {
  const Dims dims{4, 4};
  std::vector<logical_tensor> values;
  for (uint64_t i = 0; i < 3; ++i) values.emplace_back(i, Dtype::f32, dims);
  std::vector<op> ops;
  while (ops.size() < count) {
    const uint64_t id = 10 + ops.size();
    const OpKind kind = random.pick<OpKind>({MatMul, MatMul, MatMul, SoftMax, Exp, Add, Multiply, Subtract, Sigmoid,
                                             ReLU, Quantize, SoftMaxBackward, Dropout, End, Wildcard});
    // Mostly what was made lately, so that chains arise.
    const auto any = [&](Dtype type) {
      for (int tries = 0;; ++tries) {
        const auto n = static_cast<int64_t>(values.size());
        const logical_tensor& t =
            values[static_cast<size_t>(random.whole(random.coin() ? 0 : std::max<int64_t>(0, n - 5), n - 1))];
        if (t.dtype == type || tries > 100) return t.dtype == type ? t : values[0];
      }
    };
    op made(id, kind);
    made.add_input(any(Dtype::f32));
    if (OpSet(MatMul | Add | Multiply | Subtract | SoftMaxBackward).has(kind)) made.add_input(any(Dtype::f32));
    if (kind == Dropout)
      made.add_input(logical_tensor(5, Dtype::s64, Dims{1}))
          .add_input(logical_tensor(6, Dtype::s64, Dims{1}))
          .add_input(logical_tensor(7, Dtype::f32, Dims{1}));
    if (kind == Quantize) made.set_attr(Attr::scales, std::vector<float>{0.5f});
    if (kind != End) made.add_output(logical_tensor(id, kind == Quantize ? Dtype::s8 : Dtype::f32, dims));
    if (kind != End && kind != Quantize) values.push_back(made.outputs[0]);
    ops.push_back(made);
    if (kind != Quantize || random.whole(0, 3) == 0) continue;
    op back(id + 1, Dequantize);
    back.add_input(made.outputs[0]).add_output(logical_tensor(id + 1, Dtype::f32, dims));
    back.set_attr(Attr::scales, std::vector<float>{0.5f});
    values.push_back(back.outputs[0]);
    ops.push_back(back);
  }
  return ops;
}

TEST(rule, random_graphs_with_products_stay_sound) {
  std::map<std::string, int> patterns;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const graph g = made_of(random_matrices(random, static_cast<uint64_t>(random.whole(3, 90))));
    const auto partitions = partition_graph(*g.form(), {});
    EXPECT_EQ(unsoundness(*g.form(), partitions), "");
    for (const Partition& p : partitions) ++patterns[p.pattern];
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  for (const char* name : {"attention", "matmul_gradients", "matmul_neighbourhood", "elementwise_neighbourhood"})
    EXPECT_GT(patterns[name], 100) << name;
}

TEST(rule, linked_samples_of_patterns_stay_sound) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const graph g = made_of(linked_samples(random, static_cast<int>(random.whole(1, 12))));
    EXPECT_EQ(unsoundness(*g.form(), partition_graph(*g.form(), {})), "");
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

op binary(OpKind kind, uint64_t id, uint64_t a, uint64_t b) {
  const Dims dims{4, 4};
  return op(id, kind)
      .add_input(logical_tensor(a, Dtype::f32, dims))
      .add_input(logical_tensor(b, Dtype::f32, dims))
      .add_output(logical_tensor(id, Dtype::f32, dims));
}

std::vector<op> diamonds(uint64_t count) {
  std::vector<op> ops;
  for (uint64_t i = 10; i < 10 + count; ++i) ops.push_back(binary(Multiply, i, i - 1, std::max<uint64_t>(i - 2, 1)));
  return ops;
}

/// Products and sums whose other operands come from far back, as activations in training do.
std::vector<op> from_far_back(uint64_t count) {
  std::vector<op> ops;
  for (uint64_t i = 10; i < 10 + count; ++i) {
    const uint64_t mirrored = 20 + count - i;
    ops.push_back(binary(i % 7 == 0 ? MatMul : Add, i, i - 1, mirrored < i ? mirrored : 1));
  }
  return ops;
}

/// Each takes a moment; anything worse than linear would take minutes.
TEST(rule, large_graphs_are_partitioned_in_linear_time_and_without_recursion) {
  std::vector<op> backwards = from_far_back(20000);
  std::reverse(backwards.begin(), backwards.end());
  for (const auto& ops : {from_far_back(100000), diamonds(20000), backwards}) {
    const graph g = made_of(ops);
    const auto partitions = partition_graph(*g.form(), {});
    EXPECT_EQ(unsoundness(*g.form(), partitions), "");
    EXPECT_LT(partitions.size(), ops.size() / 3);
    EXPECT_GE(partitions.size(), ops.size() / kRuleLimit);
  }
}

}  // namespace
}  // namespace partita::test
