// SPDX-License-Identifier: Apache-2.0
// The graphs of tests/data: every one agrees with the references, and together they show every operator and pattern.
#include <gtest/gtest.h>

#include <algorithm>

#include "partita/json.hpp"
#include "passes/claims.hpp"
#include "passes/pattern.hpp"
#include "src/harness/graph_run.hpp"
#include "src/harness/prepared_graph.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/graph_files.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

const std::string kFolder = PARTITA_SOURCE_DIR "/tests/data";

Result<GraphReport> verified_run(const std::string& file, Policy policy, bool open_layouts = false) {
  Result<graph> g = graph_from_json_file(kFolder + "/" + file);
  if (!g.ok()) return std::move(g).take_status();
  return run_graph(*g, {.policy = policy, .verify = true, .open_layouts = open_layouts});
}

void expect_agreement(const Result<GraphReport>& report) {
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->mismatch, "");
  EXPECT_TRUE(report->verified);
  // A comparison that compared nothing would agree as well.
  EXPECT_TRUE(std::any_of(report->partitions.begin(), report->partitions.end(),
                          [](const PartitionReport& p) { return p.supported && p.bytes > 0; }));
}

class data_graph : public testing::TestWithParam<std::string> {};

TEST_P(data_graph, agrees_with_the_reference_when_fused) { expect_agreement(verified_run(GetParam(), Policy::fusion)); }

TEST_P(data_graph, agrees_with_the_reference_operator_by_operator) {
  const auto report = verified_run(GetParam(), Policy::debug);
  expect_agreement(report);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->partitions.size(), report->ops);
}

TEST_P(data_graph, agrees_with_the_reference_when_layouts_between_partitions_are_open) {
  expect_agreement(verified_run(GetParam(), Policy::fusion, /*open_layouts=*/true));
}

TEST_P(data_graph, is_written_and_read_back_unchanged) {
  const auto g = graph_from_json_file(kFolder + "/" + GetParam());
  ASSERT_TRUE(g.ok()) << g.status().text();
  const auto again = graph_from_json(graph_to_json(*g));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again->ops(), g->ops());
}

INSTANTIATE_TEST_SUITE_P(tests_data, data_graph, testing::ValuesIn(json_files(kFolder)), file_test_name);

/// Frameworks record operators that they run themselves as Wildcards, in the middle of a graph.
TEST(data_graphs, wildcards_are_left_out_and_their_results_filled) {
  for (const Policy policy : {Policy::fusion, Policy::debug}) {
    graph g = final_graph_of(
        "%2: f32[4,8] = MatMul(%0: f32[4,6], %1: f32[6,8]); %3: f32[4,8] = Wildcard(%2); %4 = Abs(%3); %5 = Exp(%4)");
    const auto report = run_graph(g, {.policy = policy, .verify = true});
    expect_agreement(report);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(std::ranges::count_if(report->partitions, [](const PartitionReport& p) { return !p.supported; }), 1);
    auto prepared = PreparedGraph::make(g, policy, 1);
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    EXPECT_TRUE(prepared->execute().ok());
  }
}

TEST(data_graphs, wildcards_whose_results_have_no_known_shape_are_refused) {
  graph g = final_graph_of("%2: f32[?,8] = Wildcard(%0: f32[4,8]); %3 = Abs(%2)");
  const auto report = run_graph(g, {});
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().text().find("result of a Wildcard, tensor 2 "), std::string::npos) << report.status().text();
}

TEST(data_graphs, show_every_operator) {
  for (const OpDef* def : all_ops()) {
    const auto g = graph_from_json_file(kFolder + "/op/" + std::string(def->name) + ".json");
    ASSERT_TRUE(g.ok()) << g.status().text();
    EXPECT_TRUE(std::any_of(g->ops().begin(), g->ops().end(), [&](const op& o) { return o.kind == def->kind; }))
        << def->name;
  }
}

std::vector<std::string> patterns_in(const std::string& file) {
  auto g = graph_from_json_file(kFolder + "/" + file);
  EXPECT_TRUE(g.ok()) << g.status().text();
  EXPECT_TRUE(g->finalize().ok()) << file;
  const auto partitions = g->get_partitions();
  EXPECT_TRUE(partitions.ok()) << partitions.status().text();
  std::vector<std::string> names;
  for (const partition& p : *partitions) names.emplace_back(p.pattern());
  return names;
}

TEST(data_graphs, show_every_pattern_and_all_that_the_rule_makes) {
  std::vector<std::string> names;
  for (const auto& pattern : all_patterns()) names.emplace_back(pattern.name);
  for (const RuleName& row : rule_names()) names.emplace_back(row.name);
  for (const std::string& name : names) {
    const auto found = patterns_in("pattern/" + name + ".json");
    EXPECT_TRUE(std::count(found.begin(), found.end(), name)) << name;
  }
}

TEST(data_graphs, chains_of_training_are_one_partition) {
  for (const std::string& file : json_files(kFolder + "/chain")) {
    // The halves of the gate's gradient only share an input.
    EXPECT_EQ(patterns_in("chain/" + file).size(), file == "squeeze_excite.json" ? 2u : 1u) << file;
  }
}

}  // namespace
}  // namespace partita::test
