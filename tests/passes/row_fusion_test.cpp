// SPDX-License-Identifier: Apache-2.0
// Loops join with softmax and normalisations where generated code takes the result, and nothing else joins them; fused
// and unfused programs give the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/optimize/fuse_loops.hpp"
#include "passes/plan.hpp"
#include "passes/select.hpp"
#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

using testing::ElementsAre;

struct Case {
  std::string text;
  std::vector<uint64_t> kept = {};
};

std::vector<Case> cases() {
  const std::string layer = "LayerNorm(%1, %20: f32[40], %21: f32[40]) {begin_norm_axis=-1, epsilon=0.01}";
  return {
      {"%1 = Multiply(%0: f32[6,40], %9: f32[40]); %2 = Tanh(%1); %3 = SoftMax(%2) {axis=1}; %4 = Add(%3, %8: "
       "f32[6,1])"},
      {"%1 = Multiply(%0: bf16[6,40], %9: bf16[40]); %2 = Tanh(%1); %3 = SoftMax(%2) {axis=0}; %4 = Abs(%3); "
       "%5: f32 = TypeCast(%4)"},
      {"%1 = Exp(%0: f16[3,4,40]); %2 = LogSoftmax(%1) {axis=1}; %3 = Multiply(%2, %9: f16[3,4,40])", {2}},
      {"%1 = Square(%0: f32[2,9000]); %2 = LogSoftmax(%1) {axis=1}; %3 = Exp(%2)"},
      {"%2 = SoftMax(%0: f32[6,40]) {axis=1}; %3 = Multiply(%2, %0)"},
      {"%1 = Multiply(%0: f32[6,40], %9: f32[1]); %2 = SoftMaxBackward(%1, %5: f32[6,40]) {axis=1}; "
       "%3 = ReLUBackward(%6: f32[6,40], %2); %4 = Add(%3, %7: f32[6,40])"},
      {"%1 = Abs(%0: bf16[6,40]); %2 = LogSoftmaxBackward(%1, %5: bf16[6,40]) {axis=0}; %3 = Multiply(%2, %5)"},
      {"%1 = Add(%0: f32[6,40], %9: f32[6,40]); %2, %3, %4 = " + layer + "; %5 = GELU(%2); %6: bf16 = TypeCast(%5)"},
      {"%1 = Add(%0: f16[6,40], %9: f16[6,40]); %2, %3: f32, %4: f32 = " + layer + "; %5 = GELU(%2)", {1, 2}},
      {"%1 = Abs(%0: f32[6,40]); %2 = RMSNorm(%1) {begin_norm_axis=1}; %3 = Multiply(%2, %0)"},
      {"%1 = Abs(%0: f32[6,40]); %2 = RMSNorm(%1, %7: f32[40]) {begin_norm_axis=1}; %3 = Sigmoid(%2)"},
      {"%1 = ReLUBackward(%6: f32[6,40], %0: f32[6,40]); %2, %3, %4 = LayerNormBackward(%5: f32[6,40], %1, %7: f32[6], "
       "%8: f32[6], %9: f32[40]) {begin_norm_axis=1}; %10 = Add(%2, %0)"},
      {"%1 = Abs(%0: f32[2,6,5,7]); %2 = GroupNorm(%1, %7: f32[6], %8: f32[6]) {groups=3, keep_stats=false, "
       "data_format=NCX}; %3 = Sigmoid(%2); %4 = Multiply(%2, %3)"},
      {"%1 = Abs(%0: bf16[2,5,7,6]); %2, %5: f32, %6: f32 = GroupNorm(%1, %7: f32[6], %8: f32[6]) {groups=3, "
       "data_format=NXC}; %3 = Sigmoid(%2); %4 = Multiply(%2, %3)"},
  };
}

void select_and_plan(Program& program, const Target& target) {
  const Status status = select_kernels(program, target);
  ASSERT_TRUE(status.ok()) << status.text();
  plan_memory(program);
}

TEST(row_fusion, changes_no_bit) {
  for (const Isa isa : generated_isas())
    for (const Case& c : cases())
      for (uint64_t seed : {1, 2}) {
        SCOPED_TRACE(str(c.text, " ", name_of(isa)));
        const graph g = final_graph_of(c.text);
        const Partition p = one_partition(g, c.kept);
        const Target target{.isa = isa, .threads = 2};
        Program plain = lowered(p, ports_of(p)), fused = plain;
        fuse_loops(fused, target);
        EXPECT_LE(fused.steps.size(), 1 + c.kept.size() / 2);
        select_and_plan(plain, target);
        select_and_plan(fused, target);
        if (HasFatalFailure()) return;
        const Tensors inputs = input_data(g, seed);
        EXPECT_EQ(bit_difference(executed(fused, inputs, 2), executed(plain, inputs)), "");
      }
}

TEST(row_fusion, needs_a_kernel_for_the_joined_step) {
  constexpr std::string_view kSoftmax = "%1 = Abs(%0: f32[6,40]); %2 = SoftMax(%1) {axis=1}; %3 = Abs(%2)";
  EXPECT_THAT(fused_groups(kSoftmax, {.isa = Isa::any}), ElementsAre("Abs 1", "SoftMax 2", "Abs 3"));
  if (!generates_code()) return;
  const Target target{.isa = machine_isa()};
  EXPECT_THAT(fused_groups(kSoftmax, target), ElementsAre("Abs 1 + SoftMax 2 + Abs 3"));
  // Not one run along the normalised axes.
  EXPECT_THAT(fused_groups("%1 = Multiply(%0: f32[6,4,5], %9: f32[5]); %2 = RMSNorm(%1) {begin_norm_axis=1}", target),
              ElementsAre("Multiply 1", "RMSNorm 2"));
}

TEST(row_fusion, the_interpreter_does_not_replace_a_better_kernel) {
  constexpr std::string_view kPool =
      "%1 = MaxPool(%0: f32[1,4,4,8]) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], "
      "data_format=NXC}; %2 = Abs(%1)";
  EXPECT_THAT(fused_groups(kPool, {.isa = Isa::any}), ElementsAre("MaxPool 1", "Abs 2"));
}

TEST(row_fusion, statistics_are_not_read_behind) {
  if (!generates_code()) return;
  const Target target{.isa = machine_isa()};
  EXPECT_THAT(fused_groups("%2, %3: f32[6,1] = SoftMax(%0: f32[6,1]) {axis=1}; %4 = Abs(%3)", target),
              ElementsAre("SoftMax 1", "Abs 2"));
}

}  // namespace
}  // namespace partita::test
