// SPDX-License-Identifier: Apache-2.0
// The graphs of the shared corpus beside the checkout: each runs and agrees with the references, or is refused with the
// precise error it deserves.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "src/harness/graph_run.hpp"
#include "src/io/read_graph.hpp"
#include "tests/support/graph_files.hpp"

namespace partita::test {
namespace {

const std::string kFolder = PARTITA_SOURCE_DIR "/../shared/corpus";

/// File -> what is wrong with it.
const std::map<std::string, std::string> kRefused = {
    {"op/f32/biasadd_bwd.json",
     ":9: op 0 'BIASADD_0' (BiasAddBackprop): unknown operator kind `BiasAddBackprop`, did you mean "
     "`BiasAddBackward`?"},
    {"pattern/f32/avgpool_3d_chain_fusion.json",
     ":6: op 9 'POOL_0' (AvgPool): `pads_begin` and `pads_end` must hold numbers from 0 to 2147483647: "
     "pads_begin=[1,1,1], pads_end=[-1,1,0]"},
    {"pattern/int8/int8_maxpool_add_mul_fusion.json",
     ":304: op 4098 'BINARY_3' (Multiply): tensor 4257 has a different shape here (f32[1,64,1,1]) than in "
     "op 4097 'BINARY_2' (Add) (f32[1,64,300,300])"},
};

Result<GraphReport> verified_run(const std::string& file) {
  Result<ReadGraph> read = read_graph_file(file);
  if (!read.ok()) return std::move(read).take_status();
  graph g = read->value;
  Result<GraphReport> report = run_graph(g, {.verify = true});
  return report.ok() ? std::move(report) : Result<GraphReport>(with_line(std::move(report).take_status(), *read));
}

class corpus : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(corpus);

TEST_P(corpus, agrees_with_the_reference_or_is_refused_for_its_error) {
  const std::string path = kFolder + "/" + GetParam();
  const auto report = verified_run(path);
  if (const auto refused = kRefused.find(GetParam()); refused != kRefused.end()) {
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().text(), path + refused->second);
    return;
  }
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->mismatch, "");
  EXPECT_TRUE(report->verified);
}

INSTANTIATE_TEST_SUITE_P(shared, corpus, testing::ValuesIn(json_files(kFolder)), file_test_name);

TEST(corpus_list, names_only_files_that_are_there) {
  const auto files = json_files(kFolder);
  if (files.empty()) GTEST_SKIP() << "no corpus at " << kFolder << ": only the graphs of tests/data are tested";
  for (const auto& [file, error] : kRefused) EXPECT_TRUE(std::binary_search(files.begin(), files.end(), file)) << file;
}

/// Never more partitions than oneDNN Graph makes of a graph; each of them supported.
TEST(corpus_list, is_grouped_at_least_as_well_as_elsewhere) {
  std::ifstream counts(PARTITA_SOURCE_DIR "/../shared/spec/partitions.tsv");
  if (!counts || json_files(kFolder).empty())
    GTEST_SKIP() << "the corpus and its partitions.tsv are not beside the checkout";
  size_t compared = 0;
  for (std::string line; std::getline(counts, line);) {
    std::istringstream row(line);
    std::string file, ops, theirs;
    if (line.starts_with("#") || !(row >> file >> ops >> theirs)) continue;
    Result<ReadGraph> read = read_graph_file(kFolder + "/" + file);
    if (kRefused.count(file) || !read.ok()) continue;
    ASSERT_TRUE(read->value.finalize().ok()) << file;
    const auto partitions = read->value.get_partitions();
    ASSERT_TRUE(partitions.ok()) << file;
    for (const partition& p : *partitions) EXPECT_TRUE(p.supported()) << file << ": " << p.reason();
    if (theirs == "-") continue;
    EXPECT_LE(partitions->size(), std::stoul(theirs)) << file;
    ++compared;
  }
  EXPECT_GT(compared, 200u);
}

}  // namespace
}  // namespace partita::test
