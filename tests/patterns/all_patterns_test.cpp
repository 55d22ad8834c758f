// SPDX-License-Identifier: Apache-2.0
// Every pattern on random graphs made from it: it must claim all of them, and fusing must not change a result.
#include <gtest/gtest.h>

#include <algorithm>

#include "passes/match.hpp"
#include "passes/partition.hpp"
#include "src/base/text.hpp"
#include "src/harness/graph_run.hpp"
#include "src/io/dot.hpp"
#include "tests/support/sample.hpp"

namespace partita::test {
namespace {

constexpr uint64_t kSeeds = 40;

Result<graph> sampled_graph(const patterns::Pattern& pattern, uint64_t seed) {
  graph g;
  for (const op& o : sample(pattern, seed))
    if (Status s = g.add_op(o); !s.ok()) return s;
  if (Status s = g.finalize(); !s.ok()) return s;
  return g;
}

class EachPattern : public testing::TestWithParam<patterns::Pattern> {};

void expect_no_change(const patterns::Pattern& pattern) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(str(pattern.name, " seed ", seed));
    auto g = sampled_graph(pattern, seed);
    ASSERT_TRUE(g.ok()) << g.status().text();
    for (const Policy policy : {Policy::fusion, Policy::debug}) {
      const auto report = run_graph(*g, {.policy = policy, .seed = seed, .verify = true});
      ASSERT_TRUE(report.ok()) << report.status().text();
      EXPECT_TRUE(report->verified) << report->mismatch;
    }
  }
}

TEST_P(EachPattern, claims_its_own_samples) {
  const patterns::Pattern& pattern = GetParam();
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(str(pattern.name, " seed ", seed));
    auto g = sampled_graph(pattern, seed);
    ASSERT_TRUE(g.ok()) << g.status().text();
    const FinalGraph& form = *g->form();
    if (form.ops.size() < 2) continue;  // nothing to fuse
    const Groups groups(form.ops.size());
    size_t most = 0;
    Refusal refusal;
    for (int start : form.order) {
      Match match;
      if (match_at(form, pattern, start, groups, match, &refusal)) most = std::max(most, match.ops.size());
    }
    EXPECT_EQ(most, form.ops.size()) << refusal.reason << "\n" << graph_to_text(*g);
  }
}

TEST_P(EachPattern, changes_no_result) { expect_no_change(GetParam()); }

INSTANTIATE_TEST_SUITE_P(table, EachPattern, testing::ValuesIn(all_patterns()),
                         [](const auto& info) { return std::string(info.param.name); });

class EachNeighbourhood : public EachPattern {};

TEST_P(EachNeighbourhood, is_one_group) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(str(GetParam().name, " seed ", seed));
    auto g = sampled_graph(GetParam(), seed);
    ASSERT_TRUE(g.ok()) << g.status().text();
    if (g->ops().size() < 2) continue;
    std::vector<PatternNote> notes;
    const auto partitions = partition_graph(*g->form(), {}, &notes);
    EXPECT_EQ(partitions.size(), 1u) << (notes.empty() ? "" : notes.back().refusal.reason);
    EXPECT_EQ(partitions[0].pattern, GetParam().name);
  }
}

TEST_P(EachNeighbourhood, changes_no_result) { expect_no_change(GetParam()); }

INSTANTIATE_TEST_SUITE_P(rule, EachNeighbourhood, testing::ValuesIn(patterns::neighbourhoods()),
                         [](const auto& info) { return str(info.param.name, "_", info.index); });

}  // namespace
}  // namespace partita::test
