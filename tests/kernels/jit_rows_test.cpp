// SPDX-License-Identifier: Apache-2.0
// Generated loops against the interpreter: random expressions, types, shapes, layouts and partial vectors, under every
// instruction set of the machine, on guarded memory.
#include <gtest/gtest.h>

#include "tests/support/kernel_run.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

TEST(jit_rows, loops_agree_with_the_interpreter) {
  constexpr uint64_t kSeeds = 300;
  int compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    compared += expect_generated_rows_agree(random_loop(random), random, Closeness::rounded);
    if (HasFailure()) return;
  }
  if (!generated_isas().empty()) {
    EXPECT_GE(compared, static_cast<int>(kSeeds) / 2);
  }
}

}  // namespace
}  // namespace partita::test
