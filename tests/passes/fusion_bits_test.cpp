// SPDX-License-Identifier: Apache-2.0
// Fusing changes no bit: random graphs and samples of all patterns, fused and step by step through the same kernels.
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/sample.hpp"

namespace partita::test {
namespace {

/// Steps of 300 random graphs.
StepCounts expect_same_bits(RandomGraph (*grow)(Random&, int)) {
  StepCounts sum;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const RandomGraph sketch = grow(random, static_cast<int>(random.whole(2, 14)));
    const auto g = finalized(sketch.ops);
    EXPECT_TRUE(g.ok()) << g.status().text();
    if (!g.ok()) break;
    const StepCounts steps = expect_fusion_keeps_bits(*g, sketch.kept, seed);
    sum.plain += steps.plain;
    sum.fused += steps.fused;
    if (testing::Test::HasFailure()) break;
  }
  return sum;
}

TEST(fusion, changes_no_bit_of_random_graphs) {
  const StepCounts steps = expect_same_bits(random_graph);
  EXPECT_LT(steps.fused, steps.plain * 2 / 3) << "fusion joins too little for this test to mean much";
}

TEST(fusion, changes_no_bit_of_random_training_graphs) {
  const StepCounts steps = expect_same_bits(random_training_graph);
  EXPECT_LT(steps.fused, steps.plain * 3 / 4) << "fusion joins too little for this test to mean much";
}

TEST(fusion, changes_no_bit_of_what_patterns_match) {
  for (const patterns::Pattern& pattern : sampled_patterns())
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      SCOPED_TRACE(str(pattern.name, " seed ", seed));
      const auto g = finalized(sample(pattern, seed));
      ASSERT_TRUE(g.ok()) << g.status().text();
      expect_fusion_keeps_bits(*g, {}, seed);
      ASSERT_FALSE(testing::Test::HasFailure());
    }
}

}  // namespace
}  // namespace partita::test
