// SPDX-License-Identifier: Apache-2.0
// Sums of a pooling's gradient are made while it is, and what waits for them makes it again where that is cheaper; with
// the results of the references.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/op_by_op.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

using testing::ElementsAre;

/// %2: the gradient of a pooling of %0, behind it %3 = ReLUBackward.
std::string pooled(std::string_view dtype, bool overlapping, std::string_view kind) {
  const std::string windows = overlapping ? "{strides=[2,2], kernel=[3,3], pads_begin=[1,1], pads_end=[1,1]"
                                          : "{strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0]";
  const std::string source = str("%0: ", dtype, "[2,16,32,32]"), diff_dst = str("%1: ", dtype, "[2,16,16,16]");
  const std::string pool = kind == "Max" ? str("%2 = MaxPoolBackward(", source, ", ", diff_dst, ") ", windows)
                                         : str("%2 = AvgPoolBackward(", diff_dst, ") ", windows,
                                               ", exclude_pad=true, src_shape=[2,16,32,32]");
  return str(pool, ", data_format=NCX}; %3 = ReLUBackward(", kind == "Max" ? "%0" : source, ", %2)");
}

std::string with_norm(const std::string& text, std::string_view dtype) {
  return str(text, "; %9, %10: f32, %11: f32 = BatchNormTrainingBackward(%4: ", dtype,
             "[2,16,32,32], %3, %5: f32[16], %6: f32[16], %7: f32[16]) {epsilon=0.01, data_format=NCX}");
}

std::string with_bias(const std::string& text) { return text + "; %9 = BiasAddBackward(%3) {data_format=NCX}"; }

TEST(pool_sums, a_bias_takes_its_gradient_from_the_walk_that_makes_the_summands) {
  for (const Isa isa : generated_isas())
    for (const bool overlapping : {false, true})
      for (const char* kind : {"Max", "Avg"})
        EXPECT_THAT(fused_groups(with_bias(pooled("f32", overlapping, kind)), {.isa = isa}, {3}),
                    ElementsAre(str(kind, "PoolBackward 1 + ReLUBackward 2 + BiasAddBackward 3")));
}

TEST(pool_sums, quick_windows_are_made_again_behind_the_sums) {
  for (const Isa isa : generated_isas())
    for (const char* kind : {"Max", "Avg"}) {
      const auto steps = fused_steps(with_norm(pooled("f32", false, kind), "f32"), {.isa = isa});
      ASSERT_EQ(steps.size(), 3u);
      for (const size_t k : {0, 2})
        EXPECT_EQ(steps[k].find(str(kind, "PoolBackward 1 + ReLUBackward 2 + BatchNormTrainingBackward 3 |")), 0u)
            << steps[k];
      EXPECT_EQ(steps[0].find("store"), std::string::npos) << steps[0];
      EXPECT_EQ(steps[2].find("fold"), std::string::npos) << steps[2];
    }
}

TEST(pool_sums, other_windows_are_stored_where_their_sums_are_made) {
  for (const Isa isa : generated_isas())
    for (const auto& [dtype, overlapping] : {std::pair{"f32", true}, {"bf16", false}}) {
      const auto steps = fused_steps(with_norm(pooled(dtype, overlapping, "Max"), dtype), {.isa = isa});
      ASSERT_EQ(steps.size(), 3u);
      EXPECT_NE(steps[0].find("fold_sum out2"), std::string::npos) << steps[0];
      EXPECT_NE(steps[0].find("store out0"), std::string::npos) << steps[0];
      EXPECT_EQ(steps[2].find("BatchNormTrainingBackward 3 |"), 0u) << steps[2];
    }
}

TEST(pool_sums, what_is_a_result_is_not_made_again) {
  for (const Isa isa : generated_isas()) {
    const auto steps = fused_groups(with_norm(pooled("f32", false, "Max"), "f32"), {.isa = isa}, {3});
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[2], "BatchNormTrainingBackward 3");
  }
}

TEST(pool_sums, over_channels_are_loops_of_their_own) {
  for (const Isa isa : generated_isas())
    EXPECT_THAT(fused_groups(pooled("f32", false, "Max") + "; %9 = ReduceSum(%3) {axes=[1], keep_dims=true}",
                             {.isa = isa}, {3}),
                ElementsAre("MaxPoolBackward 1 + ReLUBackward 2", "ReduceSum 3"));
}

TEST(pool_sums, the_interpreter_folds_loops_alone) {
  EXPECT_THAT(fused_groups(with_bias(pooled("f32", false, "Max")), {3}),
              ElementsAre("MaxPoolBackward 1 + ReLUBackward 2", "BiasAddBackward 3"));
}

TEST(pool_sums, results_are_those_of_the_references) {
  uint64_t seed = 0;
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const bool overlapping : {false, true})
      for (const char* kind : {"Max", "Avg"})
        for (const bool norm : {false, true}) {
          const std::string text = pooled(dtype, overlapping, kind);
          SCOPED_TRACE(text);
          const graph g = final_graph_of(norm ? with_norm(text, dtype) : with_bias(text) + "; %8 = Abs(%3)");
          EXPECT_EQ(run_difference(g, ++seed, Against::references), "");
        }
}

}  // namespace
}  // namespace partita::test
