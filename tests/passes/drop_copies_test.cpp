// SPDX-License-Identifier: Apache-2.0
// Which copies are no steps, and that results stay the same.
#include "passes/optimize/drop_copies.hpp"

#include <gtest/gtest.h>

#include "tests/support/graph_text.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

/// Steps of the text's graph behind the pass; fails the test where its results have other bits than before.
std::vector<std::string> steps_behind(std::string_view text, const std::vector<uint64_t>& kept = {}) {
  const graph g = final_graph_of(text);
  const Partition partition = one_partition(g, kept);
  const Ports ports = ports_of(partition);
  Program plain = lowered(partition, ports), dropped = lowered(partition, ports);
  drop_copies(dropped);
  std::vector<std::string> steps;
  for (const Step& step : dropped.steps) {
    std::string ops;
    for (const std::string& op : step.ops) ops += (ops.empty() ? "" : " + ") + op;
    steps.push_back(ops);
  }
  make_kernels(plain);
  make_kernels(dropped);
  const Tensors inputs = input_data(g, 3);
  EXPECT_EQ(bit_difference(executed(dropped, inputs), executed(plain, inputs)), "") << text;
  return steps;
}

using Steps = std::vector<std::string>;

TEST(drop_copies, a_reshaped_tensor_is_the_same_memory) {
  EXPECT_EQ(steps_behind("%1 = StaticReshape(%0: f32[2,12]) {shape=[2,3,4], special_zero=false}; "
                         "%2 = StaticTranspose(%1) {order=[0,2,1]}; "
                         "%3 = StaticReshape(%2) {shape=[2,12], special_zero=false}"),
            (Steps{"StaticReshape 1 + StaticTranspose 2 + StaticReshape 3"}));
}

TEST(drop_copies, all_who_read_the_copy_read_the_tensor) {
  EXPECT_EQ(steps_behind("%1 = StaticReshape(%0: f32[2,6]) {shape=[3,4], special_zero=false}; %2 = Exp(%1); "
                         "%3 = Abs(%1)"),
            (Steps{"StaticReshape 1 + Exp 2", "Abs 3"}));
}

TEST(drop_copies, what_leaves_the_program_is_made_in_its_place) {
  EXPECT_EQ(steps_behind("%1 = Exp(%0: f32[2,6]); %2 = Abs(%1); "
                         "%3 = StaticReshape(%1) {shape=[3,4], special_zero=false}"),
            (Steps{"Exp 1 + StaticReshape 3", "Abs 2"}));
}

TEST(drop_copies, two_tensors_outside_are_two) {
  EXPECT_EQ(steps_behind("%1 = StaticReshape(%0: f32[2,6]) {shape=[3,4], special_zero=false}"),
            (Steps{"StaticReshape 1"}));
  EXPECT_EQ(steps_behind("%1 = Exp(%0: f32[2,6]); %2 = StaticReshape(%1) {shape=[3,4], special_zero=false}", {1}),
            (Steps{"Exp 1", "StaticReshape 2"}));
}

TEST(drop_copies, what_moves_converts_or_joins_stays) {
  EXPECT_EQ(steps_behind("%1 = StaticTranspose(%0: f32[3,4]) {order=[1,0]}; %2 = Exp(%1)"),
            (Steps{"StaticTranspose 1", "Exp 2"}));
  EXPECT_EQ(steps_behind("%1: bf16 = TypeCast(%0: f32[3,4]); %2 = Exp(%1)"), (Steps{"TypeCast 1", "Exp 2"}));
  EXPECT_EQ(steps_behind("%2 = Concat(%0: f32[3,4], %1: f32[2,4]) {axis=0}; %3 = Exp(%2)"),
            (Steps{"Concat 1", "Concat 1", "Exp 2"}));
}

}  // namespace
}  // namespace partita::test
