// SPDX-License-Identifier: Apache-2.0
// Random training graphs compute what the references do, operator by operator and in partitions.
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/op_by_op.hpp"
#include "tests/support/random_graph.hpp"

namespace partita::test {
namespace {

TEST(random_graphs, of_training_operators_compute_what_the_references_do) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    const auto g = finalized(random_training_graph(random, static_cast<int>(random.whole(1, 14))).ops);
    ASSERT_TRUE(g.ok()) << g.status().text();
    ASSERT_EQ(run_difference(*g, seed, Against::references), "");
  }
}

}  // namespace
}  // namespace partita::test
