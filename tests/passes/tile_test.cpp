// SPDX-License-Identifier: Apache-2.0
// Steps that run tile by tile: what is taken, how much memory it needs, and that it changes no result.
#include <gtest/gtest.h>

#include <algorithm>

#include "partita/engine.hpp"
#include "src/base/cpu.hpp"
#include "src/base/round.hpp"
#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

/// Attention on [b, h, s, d] with keys of the same length.
std::string attention(int b, int h, int s, int d, const char* dtype, const char* between = "") {
  const std::string q = str("[", b, ",", h, ",", s, ",", d, "]");
  return str("%3 = MatMul(%0: ", dtype, q, ", %1: ", dtype, q, ") {transpose_b=true}; %4 = Divide(%3, %5: ", dtype,
             "[1]); ", between[0] ? between : str("%6 = Add(%4, %7: ", dtype, "[", b, ",1,1,", s, "]);"),
             " %8 = SoftMax(%6) {axis=-1}; %9 = MatMul(%8, %2: ", dtype, q, ")");
}

size_t score_bytes(int b, int h, int s, Dtype dtype) {
  return static_cast<size_t>(b) * static_cast<size_t>(h) * static_cast<size_t>(s) * static_cast<size_t>(s) *
         (dtype == Dtype::f32 ? 4 : 2);
}

bool is_tiled(const CompiledGraph& g) {
  return g.executable->program.steps.size() == 1 && g.executable->program.steps[0].problem.step == StepKind::tiles;
}

TEST(tile, attention_is_one_step_that_never_holds_the_scores) {
  const CompiledGraph g = compiled_graph(attention(2, 4, 160, 32, "f32"), 2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_LT(g.executable->program.arena_bytes, score_bytes(2, 4, 160, Dtype::f32)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, the_number_of_threads_changes_no_bit) {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const std::string text = attention(1, 3, 203, 16, dtype);
    const CompiledGraph one = compiled_graph(text, 1);
    ASSERT_TRUE(is_tiled(one)) << one.steps();
    const Tensors expected = one.run();
    EXPECT_EQ(one.difference(expected), "") << one.steps();
    for (int threads : {2, 3, 8}) {
      const CompiledGraph more = compiled_graph(text, threads);
      EXPECT_EQ(bit_difference(more.run(), expected), "") << dtype << " " << threads;
      EXPECT_EQ(bit_difference(more.run(1, true), expected), "") << dtype << " " << threads;
    }
  }
}

TEST(tile, a_causal_mask_counts_in_the_whole_matrix) {
  const char* causal =
      "%10: s32 = GenIndex(%4) {axis=-2}; %11: s32 = GenIndex(%4) {axis=-1}; %12: boolean = GreaterEqual(%10, %11); "
      "%6: f32 = Select(%12, %4, %13: f32[1]);";
  const CompiledGraph g = compiled_graph(attention(1, 2, 277, 16, "f32", causal), 2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, dropout_draws_the_numbers_of_the_whole_matrix) {
  // rows that begin with a multiple of four, and others
  for (const int64_t length : {148, 150}) {
    const std::string scores = str("f32[2,3,", length, ",16]");
    const std::string dropped =
        str("%3 = MatMul(%0: ", scores, ", %1: ", scores, ") {transpose_b=true}; %4 = SoftMax(%3) {axis=-1};",
            "%9 = Dropout(%4, %5: s64[1], %6: s64[1], %7: f32[1]); %8 = MatMul(%9, %2: ", scores, ")");
    const CompiledGraph g = compiled_graph(dropped, 2);
    EXPECT_TRUE(is_tiled(g)) << g.steps();
    const Tensors expected = g.run();
    EXPECT_EQ(g.difference(expected), "") << g.steps();
    for (int threads : {1, 3, 8}) EXPECT_EQ(bit_difference(compiled_graph(dropped, threads).run(), expected), "");
  }
}

TEST(tile, grouped_queries_and_a_transposed_result) {
  const CompiledGraph g = compiled_graph(
      "%3 = StaticReshape(%0: f32[2,4,96,16]) {shape=[2,2,2,96,16], special_zero=false};"
      "%4 = StaticReshape(%1: f32[2,2,96,16]) {shape=[2,2,1,96,16], special_zero=false};"
      "%5 = StaticReshape(%2: f32[2,2,96,16]) {shape=[2,2,1,96,16], special_zero=false};"
      "%6 = MatMul(%3, %4) {transpose_b=true}; %7 = SoftMax(%6) {axis=-1}; %8 = MatMul(%7, %5);"
      "%9 = StaticTranspose(%8) {order=[0,3,1,2,4]}",
      2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, one_product_over_all_heads_becomes_one_for_each) {
  // one key and value for 4 heads of queries, which lie side by side as columns; a scale before they come apart
  const CompiledGraph columns = compiled_graph(
      "%3 = MatMul(%0: f32[2,150,16], %1: f32[2,16,600]); %4 = Multiply(%3, %5: f32[1]);"
      "%6 = StaticReshape(%4) {shape=[2,150,4,150], special_zero=false};"
      "%7 = StaticTranspose(%6) {order=[0,2,1,3]}; %8 = SoftMax(%7) {axis=-1};"
      "%9 = StaticTranspose(%8) {order=[0,2,1,3]};"
      "%10 = StaticReshape(%9) {shape=[2,150,600], special_zero=false}; %11 = MatMul(%2: f32[2,16,150], %10)",
      2);
  EXPECT_TRUE(is_tiled(columns)) << columns.steps();
  EXPECT_LT(columns.executable->program.arena_bytes, score_bytes(2, 4, 150, Dtype::f32)) << columns.steps();
  EXPECT_EQ(columns.difference(columns.run()), "") << columns.steps();
  // heads below each other as rows
  const CompiledGraph rows = compiled_graph(
      "%3 = MatMul(%0: f32[2,600,16], %1: f32[2,150,16]) {transpose_b=true};"
      "%6 = StaticReshape(%3) {shape=[2,4,150,150], special_zero=false};"
      "%7 = Add(%6, %5: f32[2,1,1,150]); %8 = SoftMax(%7) {axis=-1};"
      "%10 = StaticReshape(%8) {shape=[2,600,150], special_zero=false}; %11 = MatMul(%10, %2: f32[2,150,16])",
      2);
  EXPECT_TRUE(is_tiled(rows)) << rows.steps();
  EXPECT_EQ(rows.difference(rows.run()), "") << rows.steps();
  // an axis more than there may be
  const CompiledGraph full = compiled_graph(
      "%3 = MatMul(%0: f32[1,1,1,1,1,1,1,1,1,2,150,16], %1: f32[1,1,1,1,1,1,1,1,1,2,16,600]);"
      "%6 = StaticReshape(%3) {shape=[2,150,4,150], special_zero=false};"
      "%7 = StaticTranspose(%6) {order=[0,2,1,3]}; %8 = SoftMax(%7) {axis=-1};"
      "%11 = MatMul(%8, %2: f32[2,4,150,16])",
      2);
  EXPECT_EQ(full.difference(full.run()), "") << full.steps();
  // the second product sums over heads and columns
  const CompiledGraph summed = compiled_graph(
      "%3 = MatMul(%0: f32[2,150,16], %1: f32[2,16,600]);"
      "%6 = StaticReshape(%3) {shape=[2,150,4,150], special_zero=false};"
      "%7 = StaticTranspose(%6) {order=[0,2,1,3]}; %8 = SoftMax(%7) {axis=2};"
      "%9 = StaticTranspose(%8) {order=[0,2,1,3]};"
      "%10 = StaticReshape(%9) {shape=[2,150,600], special_zero=false}; %11 = MatMul(%10, %2: f32[2,600,16])",
      2);
  EXPECT_FALSE(is_tiled(summed)) << summed.steps();
  EXPECT_EQ(summed.difference(summed.run()), "") << summed.steps();
}

/// The gradients of one layer's attention [b, h, s, d], from the logarithms of its sums.
std::string attention_backward(int b, int h, int s, int d, const char* dtype, const char* behind = "") {
  const std::string x = str(dtype, "[", b, ",", h, ",", s, ",", d, "]"), row = str("f32[", b, ",", h, ",", s, ",1]");
  const bool narrow = std::string_view(dtype) != "f32";
  const auto cast = [&](const char* to, const char* from) {
    return narrow ? str("%", to, ": ", dtype, " = TypeCast(%", from, ");") : std::string();
  };
  return str("%20: f32 = MatMul(%0: ", x, ", %1: ", x, ") {transpose_b=true}; %21 = Subtract(%20, %2: ", row,
             "); %22 = Exp(%21);", cast("32", "22"), "%23: ", dtype, " = MatMul(", narrow ? "%32" : "%22", ", %3: ", x,
             ") {transpose_a=true}; %24: f32 = MatMul(%3, %4: ", x,
             ") {transpose_b=true}; %25 = Subtract(%24, %5: ", row, "); %26 = Multiply(%25, %22);", cast("36", "26"),
             "%27: ", dtype, " = MatMul(", narrow ? "%36" : "%26", ", %1); %28: ", dtype, " = MatMul(",
             narrow ? "%36" : "%26", ", %0) {transpose_a=true};", behind);
}

TEST(tile, attention_backward_is_cut_along_batch_and_heads) {
  const CompiledGraph g = compiled_graph(attention_backward(2, 3, 112, 16, "f32"), 2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_LT(g.executable->program.arena_bytes, 2 * score_bytes(2, 3, 112, Dtype::f32)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, gradients_of_long_sequences_add_up_queries) {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    // the last tile has fewer rows
    const std::string text = attention_backward(1, 8, 840, 8, dtype);
    const CompiledGraph g = compiled_graph(text, 2);
    ASSERT_TRUE(is_tiled(g)) << g.steps();
    EXPECT_NE(g.executable->program.steps[0].note.find("one after the other"), std::string::npos) << g.steps();
    EXPECT_LT(g.executable->program.arena_bytes, score_bytes(1, 8, 840, Dtype::f32)) << g.steps();
    const Tensors expected = g.run();
    EXPECT_EQ(g.difference(expected), "") << g.steps();
    for (int threads : {1, 3}) EXPECT_EQ(bit_difference(compiled_graph(text, threads).run(), expected), "");
  }
}

TEST(tile, what_waits_for_sums_over_queries_stands_behind) {
  const CompiledGraph g = compiled_graph(
      attention_backward(1, 2, 768, 8, "f32", "%29 = Multiply(%28, %6: f32[1]); %30 = Add(%29, %7: f32[1,2,768,8])"),
      2);
  const std::vector<Step>& steps = g.executable->program.steps;
  ASSERT_EQ(steps.size(), 2u) << g.steps();
  EXPECT_NE(steps[0].note.find("one after the other"), std::string::npos) << g.steps();
  EXPECT_EQ(steps[1].problem.step, StepKind::loop) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, one_head_is_not_added_up_by_one_thread) {
  const CompiledGraph g = compiled_graph(attention_backward(1, 1, 1200, 8, "f32"), 2);
  EXPECT_FALSE(is_tiled(g)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, quantized_attention) {
  const CompiledGraph g = compiled_graph(
      "%10: f32 = Dequantize(%0: u8[1,4,160,32]) {scales=[0.02], zps=[128], qtype=per_tensor};"
      "%11: f32 = Dequantize(%1: s8[1,4,160,32]) {scales=[0.02], zps=[0], qtype=per_tensor};"
      "%12 = MatMul(%10, %11) {transpose_b=true}; %13 = SoftMax(%12) {axis=-1};"
      "%14: u8 = Quantize(%13) {scales=[0.004], zps=[0], qtype=per_tensor};"
      "%15: f32 = Dequantize(%14) {scales=[0.004], zps=[0], qtype=per_tensor};"
      "%16: f32 = Dequantize(%2: s8[1,4,160,32]) {scales=[0.02], zps=[0], qtype=per_tensor};"
      "%17 = MatMul(%15, %16); %18: u8 = Quantize(%17) {scales=[0.02], zps=[128], qtype=per_tensor}",
      2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, what_all_rows_of_a_head_share_is_made_once) {
  const auto with_keys = [](const char* dtype, const char* keys) {
    return compiled_graph(str("%10: f32 = Dequantize(%1: s8[1,2,300,32]) {scales=[0.02], zps=[3], qtype=per_tensor};",
                              keys, "%13 = MatMul(%0: ", dtype,
                              "[1,2,300,32], %11) {transpose_b=true}; %14 = SoftMax(%13) {axis=-1}; %15 = MatMul(%14, "
                              "%2: ",
                              dtype, "[1,2,300,32])"),
                          2);
  };
  for (const auto& [dtype, keys] : {std::pair{"f32", "%11 = Multiply(%10, %12: f32[1]);"},
                                    {"bf16", "%11: bf16 = TypeCast(%10);"},
                                    {"f16", "%11: f16 = TypeCast(%10);"}}) {
    const CompiledGraph g = with_keys(dtype, keys);
    ASSERT_TRUE(is_tiled(g)) << g.steps();
    const std::string& note = g.executable->program.steps[0].note;
    const size_t once = note.find("once for"), dequantized = note.find("Dequantize"), each = note.find(" each:");
    EXPECT_LT(once, dequantized) << note;
    EXPECT_LT(dequantized, each) << note;
    EXPECT_EQ(g.difference(g.run()), "") << g.steps();
  }
  const CompiledGraph plain = compiled_graph(attention(2, 3, 160, 16, "f32"), 2);
  EXPECT_EQ(plain.executable->program.steps[0].note.find("once for"), std::string::npos) << plain.steps();
}

TEST(tile, long_sequences_do_not_hold_the_scores_either) {
  // keys and values of a head do not fit the second-level cache
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const CompiledGraph g = compiled_graph(attention(1, 2, 8192, 128, dtype), 2);
    EXPECT_TRUE(is_tiled(g)) << g.steps();
    EXPECT_LT(g.executable->program.arena_bytes, score_bytes(1, 2, 8192, Dtype::f32) / 8) << g.steps();
  }
  // of one head alone
  const CompiledGraph alone = compiled_graph(attention(1, 1, 16384, 32, "f32"), 2);
  EXPECT_TRUE(is_tiled(alone)) << alone.steps();
}

TEST(tile, a_few_queries_that_share_keys_stay_together) {
  const CompiledGraph g = compiled_graph(
      "%3 = MatMul(%0: f32[1,8,4,1,64], %1: f32[1,8,1,4096,64]) {transpose_b=true}; %4 = Divide(%3, %5: f32[1]);"
      "%6 = SoftMax(%4) {axis=-1}; %7 = MatMul(%6, %2: f32[1,8,1,4096,64])",
      2);
  EXPECT_FALSE(is_tiled(g)) << g.steps();  // each tile would read its head's keys again
}

TEST(tile, strided_inputs_are_read_where_they_lie) {
  // heads between rows and columns, as projections leave them
  const CompiledGraph g = compiled_graph(
      "%3 = StaticTranspose(%0: f32[2,100,4,16]) {order=[0,2,1,3]};"
      "%4 = StaticTranspose(%1: f32[2,100,4,16]) {order=[0,2,3,1]};"
      "%5 = StaticTranspose(%2: f32[2,100,4,16]) {order=[0,2,1,3]};"
      "%6 = MatMul(%3, %4); %7 = SoftMax(%6) {axis=-1}; %8 = MatMul(%7, %5);"
      "%9 = StaticTranspose(%8) {order=[0,2,1,3]}",
      2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

TEST(tile, small_values_and_sums_over_all_rows_stay_whole) {
  const CompiledGraph small = compiled_graph(attention(1, 2, 16, 8, "f32"), 2);
  EXPECT_FALSE(is_tiled(small)) << small.steps();
  EXPECT_EQ(small.difference(small.run()), "");
  // rows of the first product are what the second one sums over, and softmax needs whole rows
  const CompiledGraph summed = compiled_graph(
      "%3 = MatMul(%0: f32[400,16], %1: f32[16,300]); %4 = SoftMax(%3) {axis=-1}; %5 = MatMul(%4, %2: f32[400,8]) "
      "{transpose_a=true}",
      2);
  EXPECT_FALSE(is_tiled(summed)) << summed.steps();
  EXPECT_EQ(summed.difference(summed.run()), "");
}

TEST(tile, a_gated_mlp_is_cut_along_its_rows) {
  const CompiledGraph g = compiled_graph(
      "%5 = MatMul(%0: f32[700,32], %1: f32[32,150]); %6 = MatMul(%0, %2: f32[32,150]); %7 = Sigmoid(%6);"
      "%8 = Multiply(%6, %7); %9 = Multiply(%8, %5); %10 = MatMul(%9, %3: f32[150,32])",
      2);
  EXPECT_TRUE(is_tiled(g)) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

/// A gradient that three products add up to, as behind queries, keys and values.
TEST(tile, few_rows_of_large_matrices_stay_together) {
  const auto sum = [](int rows) {
    const std::string x = str(": f32[", rows, ",512]"), w = ": f32[512,512]";
    return compiled_graph(str("%10 = MatMul(%0", x, ", %1", w, "); %11 = MatMul(%2", x, ", %3", w, "); %12 = MatMul(%4",
                              x, ", %5", w, "); %13 = Add(%10, %11); %14 = Add(%13, %12)"),
                          2);
  };
  const CompiledGraph few = sum(128);
  EXPECT_FALSE(is_tiled(few)) << few.steps();  // 16 tiles would have 8 rows, and each reads all weights
  EXPECT_EQ(few.difference(few.run()), "") << few.steps();
}

TEST(tile, random_attention_is_what_the_references_compute) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const int b = static_cast<int>(random.whole(1, 2)), h = static_cast<int>(random.whole(1, 4));
    const int s = static_cast<int>(random.whole(60, 300)), d = static_cast<int>(random.whole(1, 40));
    const char* dtypes[] = {"f32", "bf16", "f16"};
    const CompiledGraph g =
        compiled_graph(attention(b, h, s, d, dtypes[random.whole(0, 2)]), static_cast<int>(random.whole(1, 3)), seed);
    ASSERT_EQ(g.difference(g.run()), "") << g.steps();
  }
}

/// Columns for which a matrix of 640 rows, in 16 bits, leaves the second-level cache, and is cut into tiles enough.
int64_t many_columns() {
  const auto kept = static_cast<int64_t>(second_level_cache_bytes()) / (640 * 2);
  return std::max<int64_t>(1024, rounded_up(kept, 256)) + 256;
}

/// The step that makes weights tile by tile; null where there is none.
const Step* weights_tiles(const CompiledGraph& g) {
  for (const Step& s : g.executable->program.steps)
    if (s.problem.step == StepKind::tiles) return &s;
  return nullptr;
}

size_t weights_bytes(int64_t columns) { return static_cast<size_t>(640 * columns) * 2; }

TEST(tile, dequantized_weights_never_exist_as_a_whole) {
  if (!generates_code()) GTEST_SKIP() << "the interpreter takes longer than writing the matrix";
  const int64_t n = many_columns(), half = n / 2;
  const struct {
    const char* what;
    std::string text;
  } cases[] = {
      {"a scale a column", str("%9: f32 = Dequantize(%0: s8[640,", n, "]) {scales=[0.02], zps=[3], qtype=per_tensor};",
                               "%10 = Multiply(%9, %1: f32[", n, "]); %11 = MatMul(%2: f32[3,640], %10)")},
      {"groups of rows, four bits",
       str("%10: f32 = DynamicDequantize(%0: u4[640,", n, "], %1: f32[5,", n, "], %2: u8[5,", n,
           "]) {qtype=per_group, group_shape=[128,1], axis=-1}; %11 = MatMul(%3: f32[3,640], %10)")},
      {"groups of columns, f16",
       str("%10: f16 = DynamicDequantize(%0: s4[640,", n, "], %1: f16[640,", n / 128,
           "]) {qtype=per_group, group_shape=[1,128], axis=-1}; %11: f16 = MatMul(%3: f16[3,640], %10)")},
      {"the other order of axes, bf16", str("%10: bf16 = DynamicDequantize(%0: u4[", n, ",640], %1: bf16[", n,
                                            ",10], %2: u4[", n, ",10]) {qtype=per_group, group_shape=[1,64], axis=-1};",
                                            "%11: bf16 = MatMul(%3: bf16[3,640], %10) {transpose_b=true}")},
      {"the first factor, and a bias",
       str("%10: f32 = DynamicDequantize(%0: s8[", n, ",640], %1: f32[", n,
           "]) {qtype=per_channel, axis=0}; %11 = MatMul(%10, %3: f32[640,3], %4: f32[3])")},
      {"a batch of matrices, and what stands behind",
       str("%9: f32 = DynamicDequantize(%0: s8[2,640,", half, "], %1: f32[1]) {qtype=per_tensor};",
           "%10: bf16 = TypeCast(%9); %11: bf16 = MatMul(%3: bf16[2,3,640], %10, %4: bf16[", half,
           "]); %12 = ReLU(%11)")},
      {"few summed, f16 and a bias",
       str("%10: f16 = DynamicDequantize(%0: s8[160,", 4 * n, "], %1: f16[", 4 * n,
           "]) {qtype=per_channel, axis=1}; %11: f16 = MatMul(%2: f16[3,160], %10, %3: f16[", 4 * n, "])")},
      {"rows of a batch", str("%10: f32 = DynamicDequantize(%0: u8[640,", n, "], %1: f32[1], %2: u8[1]) ",
                              "{qtype=per_tensor}; %11 = MatMul(%3: f32[2,2,640], %10)")},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const CompiledGraph g = compiled_graph(c.text, 2);
    const Step* tiles = weights_tiles(g);
    ASSERT_TRUE(tiles) << g.steps();
    EXPECT_NE(tiles->note.find("equantize"), std::string::npos) << g.steps();
    EXPECT_LT(g.executable->program.arena_bytes, weights_bytes(n)) << g.steps();
    const Tensors expected = g.run();
    EXPECT_EQ(g.difference(expected), "") << g.steps();
    for (int threads : {1, 3, 8}) EXPECT_EQ(bit_difference(compiled_graph(c.text, threads).run(), expected), "");
  }
}

TEST(tile, weights_that_others_need_or_many_rows_share_exist_as_a_whole) {
  if (!generates_code()) GTEST_SKIP() << "the interpreter takes longer than writing the matrix";
  const int64_t n = many_columns();
  const auto product = [&](int rows, const char* behind, const std::vector<uint64_t>& constants = {}) {
    return compiled_graph(
        str("%10: bf16 = DynamicDequantize(%0: s8[640,", n, "], %1: bf16[", n,
            "]) {qtype=per_channel, axis=1}; %11: bf16 = MatMul(%2: bf16[", rows, ",640], %10);", behind),
        2, 1, constants);
  };
  EXPECT_TRUE(weights_tiles(product(4, "")));
  EXPECT_FALSE(weights_tiles(product(300, "")));
  EXPECT_FALSE(weights_tiles(product(4, "%12: bf16 = ReLU(%10)")));
  EXPECT_FALSE(weights_tiles(product(4, "%12: bf16 = MatMul(%3: bf16[4,640], %10)")));
  EXPECT_TRUE(weights_tiles(product(4, "", {0, 1})));
  ASSERT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 64).ok());
  const CompiledGraph kept = product(4, "", {0, 1});
  EXPECT_TRUE(set_constant_cache_capacity(EngineKind::cpu, 0).ok());
  EXPECT_FALSE(weights_tiles(kept)) << kept.steps();
  const CompiledGraph integers = compiled_graph(
      str("%10: f32 = Dequantize(%0: s8[640,", n, "]) {scales=[0.02], zps=[0], qtype=per_tensor};",
          "%12: f32 = Dequantize(%1: u8[3,640]) {scales=[0.1], zps=[0], qtype=per_tensor}; %11 = MatMul(%12, %10)"),
      2);
  EXPECT_FALSE(weights_tiles(integers)) << integers.steps();
  EXPECT_EQ(integers.difference(integers.run()), "") << integers.steps();
  // many small matrices
  const CompiledGraph small =
      compiled_graph(str("%10: f32 = Dequantize(%0: s8[", n, ",16,64]) {scales=[0.02], zps=[0], qtype=per_tensor};",
                         "%11 = MatMul(%1: f32[", n, ",3,16], %10)"),
                     2);
  EXPECT_FALSE(weights_tiles(small)) << small.steps();
  // nor few columns, which threads could not share
  const CompiledGraph few =
      compiled_graph(str("%10: f32 = Dequantize(%0: s8[", 3 * n, ",256]) {scales=[0.02], zps=[0], qtype=per_tensor};",
                         "%11 = MatMul(%1: f32[3,", 3 * n, "], %10)"),
                     2);
  EXPECT_FALSE(weights_tiles(few)) << few.steps();
  EXPECT_EQ(few.difference(few.run()), "") << few.steps();
}

TEST(tile, random_dequantized_weights_are_what_the_references_compute) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const char *types[] = {"s4", "u4", "s8", "u8"}, *floats[] = {"f32", "bf16", "f16"};
    const int64_t group = int64_t{1} << random.whole(1, 7), n = many_columns() + group * random.whole(0, 3);
    const int64_t summed = 512 + 128 * random.whole(0, 3), whole_n = n / group * group;
    const bool turned = random.whole(0, 1) == 1, along_summed = random.whole(0, 1) == 1;
    const std::string matrix = turned ? str(whole_n, ",", summed) : str(summed, ",", whole_n);
    const bool last = turned == along_summed;
    const int64_t first = turned ? whole_n : summed, second = turned ? summed : whole_n;
    const std::string groups = last ? str(first, ",", second / group) : str(first / group, ",", second);
    const char *type = types[random.whole(0, 3)], *number = floats[random.whole(0, 2)];
    const std::string zero_points =
        random.whole(0, 1) == 1 ? str(", %2: ", type[0] == 'u' ? "u8" : "s8", "[", groups, "]") : "";
    const CompiledGraph g = compiled_graph(
        str("%10: ", number, " = DynamicDequantize(%0: ", type, "[", matrix, "], %1: ", number, "[", groups, "]",
            zero_points, ") {qtype=per_group, group_shape=", last ? str("[1,", group, "]") : str("[", group, ",1]"),
            ", axis=-1}; %11: ", number, " = MatMul(%3: ", number, "[", random.whole(2, 9), ",", summed,
            "], %10) {transpose_b=", turned ? "true" : "false", "}"),
        static_cast<int>(random.whole(1, 3)), seed);
    ASSERT_EQ(g.difference(g.run()), "") << g.steps();
  }
}

}  // namespace
}  // namespace partita::test
