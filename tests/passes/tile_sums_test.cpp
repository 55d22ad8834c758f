// SPDX-License-Identifier: Apache-2.0
// Sums of large tensors that are read again behind them: batch normalisation in training runs some channels at a time,
// each from memory once, with the results of the references.
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/large_results.hpp"

namespace partita::test {
namespace {

/// Two images of 32 channels whose tensors, two together, leave the caches. Empty where that is too large for a test.
std::string images(bool channel_last) {
  const int64_t columns = large_bytes() / 2 / (2 * 32 * 64 * 4) / 16 * 16 + 32;
  if (large_bytes() == 0) return {};
  return channel_last ? str("[2,64,", columns, ",32]") : str("[2,32,64,", columns, "]");
}

std::string format(bool channel_last) { return channel_last ? "data_format=NXC}" : "data_format=NCX}"; }

std::string forward(const std::string& dims, bool channel_last) {
  return str("%1, %2, %3, %4, %5 = BatchNormForwardTraining(%0: f32", dims,
             ", %11: f32[32], %12: f32[32], %13: f32[32], %14: f32[32]) {epsilon=0.01, ", format(channel_last),
             "; %6 = ReLU(%1)");
}

std::string backward(const std::string& dims, std::string_view dtype) {
  return str("%1 = ReLUBackward(%0: ", dtype, dims, ", %10: ", dtype, dims,
             "); %2, %3: f32, %4: f32 = BatchNormTrainingBackward(%11: ", dtype, dims,
             ", %1, %12: f32[32], %13: f32[32], %14: f32[32]) {epsilon=0.01, ", format(false));
}

bool is_tiled(const CompiledGraph& g) {
  return g.executable->program.steps.size() == 1 && g.executable->program.steps[0].problem.step == StepKind::tiles;
}

class TileSums : public testing::Test {
 protected:
  void SetUp() override {
    if (!generates_code()) GTEST_SKIP() << "no code is generated here";
    if (large_bytes() == 0) GTEST_SKIP() << "what leaves this machine's caches is too large for a test";
  }
};

TEST_F(TileSums, batch_normalisation_reads_each_channel_once) {
  const CompiledGraph there = compiled_graph(forward(images(false), false), 2);
  EXPECT_TRUE(is_tiled(there)) << there.steps();
  EXPECT_EQ(there.difference(there.run()), "") << there.steps();
  for (const char* dtype : {"f32", "bf16"}) {
    const CompiledGraph back = compiled_graph(backward(images(false), dtype), 2);
    EXPECT_TRUE(is_tiled(back)) << back.steps();
    EXPECT_LT(back.executable->program.arena_bytes, static_cast<size_t>(large_bytes()) / 4) << back.steps();
    EXPECT_EQ(back.difference(back.run()), "") << back.steps();
  }
}

TEST_F(TileSums, results_take_the_places_of_what_a_tile_reads_alone) {
  using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;
  const CompiledGraph there = compiled_graph(forward(images(false), false), 2);
  ASSERT_TRUE(is_tiled(there)) << there.steps();
  const Program& program = there.executable->program;
  EXPECT_EQ(program.inplace, (Pairs{{11, 2}, {12, 3}, {13, 4}, {0, 6}})) << there.steps();
  EXPECT_EQ(bit_difference(executed_in_place(program, there.inputs), there.run()), "");
}

TEST_F(TileSums, the_number_of_threads_changes_no_bit) {
  const std::string text = backward(images(false), "f32");
  const CompiledGraph one = compiled_graph(text, 1);
  ASSERT_TRUE(is_tiled(one)) << one.steps();
  const Tensors expected = one.run();
  for (const int threads : {2, 3, 8})
    EXPECT_EQ(bit_difference(compiled_graph(text, threads).run(), expected), "") << threads << " threads";
}

TEST_F(TileSums, what_stays_in_the_caches_is_walked_as_a_whole) {
  const CompiledGraph small = compiled_graph(forward("[2,32,8,8]", false), 2);
  EXPECT_FALSE(is_tiled(small)) << small.steps();
}

TEST_F(TileSums, channels_beside_each_other_are_walked_together) {
  const CompiledGraph last = compiled_graph(forward(images(true), true), 2);
  EXPECT_FALSE(is_tiled(last)) << last.steps();
  EXPECT_EQ(last.difference(last.run()), "") << last.steps();
}

/// One loop makes both.
TEST_F(TileSums, sums_that_nothing_waits_for_are_loops) {
  const CompiledGraph g = compiled_graph(str("%1 = ReLUBackward(%0: f32", images(false), ", %10: f32", images(false),
                                             "); %2 = BiasAddBackward(%1) {", format(false), "; %3 = Abs(%1)"),
                                         2);
  for (const Step& step : g.executable->program.steps) EXPECT_NE(step.problem.step, StepKind::tiles) << g.steps();
}

std::string behind_pooling(bool maximum, const std::string& wide, bool channel_last) {
  const int64_t width = std::stoll(wide.substr(wide.rfind("64,") + 3)) / 2;
  const std::string narrow = channel_last ? str("[2,32,", width, ",32]") : str("[2,32,32,", width, "]");
  const std::string windows = str("strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], ");
  const std::string pool =
      maximum ? str("MaxPoolBackward(%0: f32", wide, ", %9: f32", narrow, ") {", windows, format(channel_last))
              : str("AvgPoolBackward(%9: f32", narrow, ") {exclude_pad=true, src_shape=", wide, ", ", windows,
                    format(channel_last));
  return str("%10 = ", pool, "; %1 = ReLUBackward(%0", maximum ? "" : str(": f32", wide),
             ", %10); %2, %3: f32, %4: f32 = BatchNormTrainingBackward(%11: f32", wide,
             ", %1, %12: f32[32], %13: f32[32], %14: f32[32]) {epsilon=0.01, ", format(channel_last));
}

/// It is made once, and stays in the caches until the sums are there.
TEST_F(TileSums, the_gradient_of_a_pooling_never_reaches_memory) {
  for (const bool maximum : {true, false}) {
    const std::string text = behind_pooling(maximum, images(false), false);
    const CompiledGraph g = compiled_graph(text, 2);
    EXPECT_TRUE(is_tiled(g)) << g.steps();
    EXPECT_LT(g.executable->program.arena_bytes, static_cast<size_t>(large_bytes()) / 4) << g.steps();
    const Tensors expected = g.run();
    EXPECT_EQ(g.difference(expected), "") << g.steps();
    for (const int threads : {1, 3})
      EXPECT_EQ(bit_difference(compiled_graph(text, threads).run(), expected), "") << threads << " threads";
  }
}

TEST_F(TileSums, the_gradient_of_a_pooling_is_folded_as_it_is_made_where_channels_lie_beside_each_other) {
  const CompiledGraph g = compiled_graph(behind_pooling(true, images(true), true), 2);
  for (const Step& step : g.executable->program.steps) EXPECT_NE(step.problem.step, StepKind::tiles) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

/// Its result would have to wait for the tiles.
TEST_F(TileSums, a_forward_pooling_keeps_its_neighbours) {
  const CompiledGraph g = compiled_graph(
      str(forward(images(false), false),
          "; %7 = MaxPool(%6) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], ", format(false)),
      2);
  for (const Step& step : g.executable->program.steps) EXPECT_NE(step.problem.step, StepKind::tiles) << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

}  // namespace
}  // namespace partita::test
