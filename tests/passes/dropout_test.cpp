// SPDX-License-Identifier: Apache-2.0
// Dropout as a loop: what it joins, what it does not, and that its numbers stay those of the whole tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// `@` in the text stands for dims.
std::string with_dims(std::string text, const std::string& dims) {
  for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) text.replace(at, 1, dims);
  return text;
}

std::vector<std::string> groups_with_generated_code(std::string_view text) {
  return fused_groups(text, Target{.isa = generated_isas().back(), .threads = 1});
}

TEST(dropout, is_one_walk_with_its_neighbours_and_its_mask) {
  const std::string text =
      "%1 = ReLU(%0: bf16[4,8]); %6, %7: u8 = Dropout(%1, %2: s64[1], %3: s64[1], %4: f32[1]); %9 = Add(%6, %8: "
      "bf16[8])";
  EXPECT_THAT(fused_groups(text, {7}), ElementsAre("ReLU 1 + Dropout 2 + Add 3"));
  const std::vector<std::string> steps = fused_steps(text, {7});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(steps[0], HasSubstr("uniform"));
  EXPECT_THAT(steps[0], HasSubstr("store out1"));
}

TEST(dropout, joins_what_folds_behind_it) {
  if (!generates_code()) GTEST_SKIP() << "reductions are loops where code is generated";
  EXPECT_THAT(groups_with_generated_code("%5 = Dropout(%0: f32[64,96], %2: s64[1], %3: s64[1], %4: f32[1]);"
                                         "%6 = ReduceSum(%5) {axes=[0], keep_dims=false}"),
              ElementsAre("Dropout 1 + ReduceSum 2"));
}

TEST(dropout, stays_behind_steps_that_walk_by_places_of_their_own) {
  if (!generates_code()) GTEST_SKIP() << "the interpreter's poolings take whatever a loop computes";
  const std::string behind = "; %6 = Dropout(%1, %2: s64[1], %3: s64[1], %4: f32[1])";
  for (const char* first :
       {"%1 = SoftMax(%0: f32[8,64]) {axis=-1}", "%1 = MatMul(%0: f32[8,64], %9: f32[64,16])",
        "%1 = AvgPool(%0: f32[2,8,16,16]) {strides=[2,2], kernel=[2,2], pads_begin=[0,0], pads_end=[0,0], "
        "exclude_pad=true, data_format=NCX}",
        "%1 = Interpolate(%0: f32[2,8,16,16]) {mode=nearest, sizes=[32,32], data_format=NCX}"}) {
    EXPECT_EQ(groups_with_generated_code(first + behind).size(), 2u) << first;
  }
}

/// Rows of which every one begins with a multiple of four, and others; transposed neighbours; numbers that repeat.
TEST(dropout, has_the_numbers_of_the_whole_tensor_fused_or_not) {
  for (const char* text : {
           "%6, %7: u8 = Dropout(%0: f32[@], %2: s64[1], %3: s64[1], %4: f32[1]); %9 = Multiply(%6, %8: f32[@])",
           "%1 = Tanh(%0: bf16[@]); %6, %7: u8 = Dropout(%1, %2: s64[1], %3: s64[1], %4: f32[1]);"
           "%10 = StaticTranspose(%6) {order=[1,0]}; %11 = ReLU(%10)",
           "%6 = Dropout(%0: f16[@], %2: s64[1], %3: s64[1], %4: f32[1]);"
           "%7 = Dropout(%6, %2: s64[1], %3: s64[1], %4: f32[1]); %9: f32 = TypeCast(%7)",
       })
    for (const char* dims : {"36,150", "37,152", "130,33", "1,7"}) {
      SCOPED_TRACE(with_dims(text, dims));
      for (int threads : {1, 2, 3, 8}) {
        const CompiledGraph g = compiled_graph(with_dims(text, dims), threads);
        EXPECT_EQ(g.difference(g.run(threads)), "") << g.steps();
      }
      expect_fusion_keeps_bits(final_graph_of(with_dims(text, dims)), {}, 1);
    }
}

}  // namespace
}  // namespace partita::test
