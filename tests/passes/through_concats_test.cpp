// SPDX-License-Identifier: Apache-2.0
// Loops behind concatenations: which move to the parts, and that results stay what they were.
#include "passes/optimize/through_concats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/optimize/fuse_loops.hpp"
#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

using testing::ElementsAre;

/// Operators of the steps, behind the pass and the fusing of loops; the results must be what the references compute.
std::vector<std::string> steps_of(const std::string& text) {
  const graph g = final_graph_of(text);
  const Partition p = one_partition(g);
  const Ports ports = ports_of(p);
  Program program = lowered(p, ports);
  move_through_concats(program);
  fuse_loops(program, [](const Problem&, const Problem&) { return true; });
  std::vector<std::string> steps;
  for (const Step& step : program.steps) {
    std::string ops;
    for (const std::string& op : step.ops) ops += str(ops.empty() ? "" : " + ", op);
    steps.push_back(std::move(ops));
  }
  const CompiledGraph compiled = compiled_graph(text, 2);
  if (compiled.executable) {
    EXPECT_EQ(compiled.difference(compiled.run(2)), "") << text;
  }
  return steps;
}

TEST(through_concats, what_is_behind_joins_what_makes_the_parts) {
  EXPECT_THAT(steps_of("%1 = Abs(%0: f32[2,64]); %2 = Exp(%5: f32[2,70]); %3 = Concat(%1, %2) {axis=1}; %4 = Tanh(%3)"),
              ElementsAre("Abs 1 + Tanh 4 + Concat 3", "Exp 2 + Tanh 4 + Concat 3"));
  // with operands of its own, repeated along the axis, along others, and whole; several loops behind each other
  EXPECT_EQ(steps_of("%2 = Concat(%0: bf16[2,3,70], %1: bf16[2,5,70]) {axis=1}; %4 = Add(%2, %3: bf16[1,8,1]); "
                     "%6 = Multiply(%4, %5: bf16[2,1,70]); %8 = Subtract(%6, %7: bf16[2,8,70]); %9 = ReLU(%8)")
                .size(),
            2U);
  EXPECT_EQ(
      steps_of("%3 = Concat(%0: f32[2,64], %1: f32[2,64], %2: f32[2,64]) {axis=1}; %4: bf16 = TypeCast(%3)").size(),
      3U);
}

TEST(through_concats, a_concatenation_of_concatenations_is_one) {
  EXPECT_THAT(steps_of("%2 = Concat(%0: f32[2,3], %1: f32[2,4]) {axis=1}; %4 = Concat(%3: f32[2,5], %2) {axis=1}"),
              ElementsAre("Concat 2", "Concat 1 + Concat 2", "Concat 1 + Concat 2"));
  EXPECT_THAT(steps_of("%2 = Concat(%0: f32[2,3], %1: f32[2,3]) {axis=0}; %4 = Concat(%3: f32[4,5], %2) {axis=1}"),
              ElementsAre("Concat 2", "Concat 1 + Concat 2", "Concat 1 + Concat 2"));
}

TEST(through_concats, what_others_need_is_made) {
  EXPECT_THAT(steps_of("%2 = Concat(%0: f32[2,64], %1: f32[2,64]) {axis=1}; %3 = Tanh(%2); %4 = SoftMax(%2) {axis=1}"),
              testing::Contains("Tanh 2"));
  const std::string text = "%2 = Concat(%0: f32[2,64], %1: f32[2,64]) {axis=1}; %3 = Tanh(%2); %4 = Exp(%2)";
  EXPECT_EQ(steps_of(text).size(), 4U);  // both move
}

TEST(through_concats, what_takes_the_loop_in_front_keeps_it) {
  EXPECT_THAT(steps_of("%2 = Concat(%0: f32[2,64], %1: f32[2,64]) {axis=1}; %3 = Tanh(%2); %4 = SoftMax(%3) {axis=1}"),
              ElementsAre("Concat 1", "Concat 1", "Tanh 2 + SoftMax 3"));
}

TEST(through_concats, what_is_reduced_stays_with_its_reduction) {
  if (!generates_code()) GTEST_SKIP() << "without generated code a reduction is a primitive's";
  EXPECT_THAT(steps_of("%2 = Concat(%0: f32[2,64], %1: f32[2,64]) {axis=1}; %3 = Tanh(%2); "
                       "%4: f32[2,1] = ReduceSum(%3) {axes=[1], keep_dims=true}"),
              testing::Contains(testing::StartsWith("Tanh 2 + ReduceSum 3")));
}

TEST(through_concats, short_and_many_parts_stay) {
  EXPECT_THAT(steps_of("%2 = Concat(%0: f32[2,3], %1: f32[2,4]) {axis=1}; %3 = Tanh(%2)"),
              ElementsAre("Concat 1", "Concat 1", "Tanh 2"));
  std::string many;
  for (int i = 0; i < 5; ++i) many += str(i ? ", %" : "%", i, ": f32[2,64]");
  EXPECT_EQ(steps_of(str("%5 = Concat(", many, ") {axis=1}; %6 = Tanh(%5)")).back(), "Tanh 2");
}

TEST(through_concats, what_knows_its_place_stays) {
  const std::string text =
      "%2 = Concat(%0: f32[2,64], %1: f32[2,64]) {axis=1}; %3: s32[2,128] = GenIndex(%2) {axis=1}; %5: boolean[2,128] "
      "= "
      "GreaterEqual(%3, %4: s32[1]) ; %6: f32[2,128] = Select(%5, %2, %7: f32[1])";
  EXPECT_THAT(steps_of(text), ElementsAre("Concat 1", "Concat 1", "GenIndex 2 + GreaterEqual 3 + Select 4"));
}

}  // namespace
}  // namespace partita::test
