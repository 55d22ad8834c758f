// SPDX-License-Identifier: Apache-2.0
// Tensors without elements, and with a single one.
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"

namespace partita::test {
namespace {

TEST(special_shapes, sums_over_nothing_are_zero) {
  for (const char* text : {
           "%3: f32[0,4], %4: f32[1,4] = PReLUBackward(%0: f32[0,4], %1: f32[1,4], %2: f32[0,4])",
           "%3: f32[2,0], %4: f32[1] = PReLUBackward(%0: f32[2,0], %1: f32[1], %2: f32[2,0])",
           "%1: f32[4] = ReduceSum(%0: f32[0,4]) {axes=[0]}",
           "%1: f32[3] = BiasAddBackward(%0: f32[0,2,3])",
           "%2: f32[2,4] = MatMul(%0: f32[2,0], %1: f32[0,4])",
       }) {
    SCOPED_TRACE(text);
    const CompiledGraph g = compiled_graph(text, 1);
    EXPECT_EQ(g.difference(g.run()), "");
  }
}

/// Its operands are in one register each, where those of more come from memory.
TEST(special_shapes, one_element_is_computed_as_many_are) {
  for (const char* type : {"bf16", "f16", "f32"})
    for (const char* op : {"Tanh", "Sigmoid", "Exp", "SoftPlus"})
      for (uint64_t seed = 1; seed <= 40; ++seed) {
        const std::string one = str("%1: ", type, "[1,1] = ", op, "(%0: ", type, "[1,1])");
        const std::string sum = str("%1: ", type, "[1] = ReduceSum(%0: ", type, "[300,1]) {axes=[0]}; ");
        for (const std::string& text : {one, str(one, "; %3: ", type, "[1,64] = Multiply(%1, %2: ", type, "[1,64])"),
                                        str(sum, "%2: ", type, "[1] = ", op, "(%1)")}) {
          SCOPED_TRACE(str(text, ", seed ", seed));
          const CompiledGraph g = compiled_graph(text, 1, seed);
          EXPECT_EQ(g.difference(g.run()), "");
          if (HasFailure()) return;
        }
      }
}

}  // namespace
}  // namespace partita::test
