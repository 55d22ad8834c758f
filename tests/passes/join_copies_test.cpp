// SPDX-License-Identifier: Apache-2.0
// Concatenations: which copies become one step, and that results stay what they were.
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

using Kinds = std::vector<StepKind>;

/// The steps of the graph, compiled; its results must be what the references compute.
Kinds steps_of(std::string_view text, const std::map<uint64_t, Dims>& strides = {}) {
  const CompiledGraph g = compiled_graph(text, 2, 1, {}, strides);
  if (!g.executable) return {};
  EXPECT_EQ(g.difference(g.run(2)), "") << text;
  Kinds kinds;
  for (const Step& step : g.executable->program.steps) kinds.push_back(step.problem.step);
  return kinds;
}

class join_copies : public testing::Test {
 protected:
  void SetUp() override {
    if (!generates_code()) GTEST_SKIP() << "without generated code copies stay loops";
  }
};

TEST_F(join_copies, concatenations_are_one_step) {
  EXPECT_EQ(steps_of("%3 = Concat(%0: f32[2,3,5], %1: f32[2,4,5], %2: f32[2,1,5]) {axis=1}"), Kinds{StepKind::concat});
  EXPECT_EQ(steps_of("%3 = Concat(%0: bf16[2,3,5], %1: bf16[2,3,5], %2: bf16[2,3,5]) {axis=-1}"),
            Kinds{StepKind::concat});
  EXPECT_EQ(steps_of("%2 = Concat(%0: f16[3], %1: f16[8]) {axis=0}"), Kinds{StepKind::concat});
  // images whose channels are last in memory
  EXPECT_EQ(steps_of("%2: f32[2,10,4,5] = Concat(%0: f32[2,3,4,5], %1: f32[2,7,4,5]) {axis=1}",
                     {{0, {60, 1, 15, 3}}, {1, {140, 1, 35, 7}}, {2, {200, 1, 50, 10}}}),
            Kinds{StepKind::concat});
  // a part of a larger tensor
  EXPECT_EQ(steps_of("%2: f32[6,8] = Concat(%0: f32[6,3], %1: f32[6,5]) {axis=1}", {{1, {40, 1}}, {2, {64, 1}}}),
            Kinds{StepKind::concat});
}

TEST_F(join_copies, what_reads_the_result_comes_behind) {
  EXPECT_EQ(steps_of("%2 = Concat(%0: f32[6,3], %1: f32[6,5]) {axis=1}; %3 = SoftMax(%2) {axis=1}"),
            (Kinds{StepKind::concat, StepKind::softmax}));
}

TEST_F(join_copies, only_copies_are_joined) {
  EXPECT_EQ(steps_of("%1 = ReLU(%0: f32[6,3]); %4 = Concat(%1, %2: f32[6,5]) {axis=1}"),
            (Kinds{StepKind::loop, StepKind::loop}));
  EXPECT_EQ(steps_of("%1 = ReLU(%0: f32[6,3]); %4 = Concat(%1, %2: f32[6,5], %3: f32[6,4]) {axis=1}"),
            (Kinds{StepKind::loop, StepKind::concat}));
  EXPECT_EQ(steps_of("%1 = ReLU(%0: f32[6,3]); %4 = Concat(%2: f32[6,5], %1, %3: f32[6,4]) {axis=1}"),
            (Kinds{StepKind::loop, StepKind::loop, StepKind::loop}));
}

TEST_F(join_copies, copies_across_runs_stay_loops) {
  EXPECT_EQ(steps_of("%2 = Concat(%0: f32[6,3], %1: f32[6,5]) {axis=1}", {{1, {1, 6}}}),
            (Kinds{StepKind::loop, StepKind::loop}));
}

}  // namespace
}  // namespace partita::test
