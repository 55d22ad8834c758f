// SPDX-License-Identifier: Apache-2.0
// Poolings against another implementation's results: the problems that tests/integration/pool_torch.py writes, in the
// folder that PARTITA_POOL_CASES names.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "partita/json.hpp"
#include "partita/partita.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "tests/support/graph_files.hpp"

namespace partita::test {
namespace {

using Bytes = std::vector<char>;

Bytes content(const std::string& stem, uint64_t id) {
  std::ifstream file(stem + "." + std::to_string(id) + ".bin", std::ios::binary);
  EXPECT_TRUE(file.is_open()) << stem << " tensor " << id;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The peer rounds once from f32; so do we, from another order of additions.
double tolerance_of(Dtype dtype) { return dtype == Dtype::bf16 ? 8e-3 : dtype == Dtype::f16 ? 1e-3 : 2e-6; }

void expect_equal(const logical_tensor& t, const Bytes& got, const Bytes& expected) {
  for (int64_t i = 0; i < t.elements(); ++i) {
    const Dims at = coordinates(i, t.dims);
    int64_t position = 0;
    for (int d = 0; d < at.size(); ++d) position += at[d] * t.strides[d];
    const double a = load_as_double(got.data(), t.dtype, position);
    const double b = load_as_double(expected.data(), t.dtype, position);
    const double allowed = t.dtype == Dtype::s64 ? 0 : tolerance_of(t.dtype) * std::max(1.0, std::abs(b));
    ASSERT_LE(std::abs(a - b), allowed) << "tensor " << t.id << " element " << i << ": " << a << ", the peer has " << b;
  }
}

void expect_agreement(const std::string& stem) {
  Result<graph> g = graph_from_json_file(stem + ".json");
  ASSERT_TRUE(g.ok()) << g.status().text();
  const Status finalized = g->finalize();
  ASSERT_TRUE(finalized.ok()) << finalized.text();
  const auto groups = g->get_partitions();
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 1u);
  const auto compiled =
      groups->front().compile(groups->front().input_ports(), groups->front().output_ports(), engine());
  ASSERT_TRUE(compiled.ok()) << compiled.status().text();
  std::vector<Bytes> in, out;
  std::vector<tensor> sources, targets;
  for (const logical_tensor& t : compiled->inputs()) in.push_back(content(stem, t.id));
  for (const logical_tensor& t : compiled->outputs()) out.emplace_back(content(stem, t.id).size(), '\xff');
  for (size_t i = 0; i < in.size(); ++i) sources.emplace_back(compiled->inputs()[i], in[i].data());
  for (size_t i = 0; i < out.size(); ++i) targets.emplace_back(compiled->outputs()[i], out[i].data());
  const Status status = compiled->execute(stream(engine()), sources, targets);
  ASSERT_TRUE(status.ok()) << status.text();
  for (size_t i = 0; i < out.size(); ++i)
    expect_equal(compiled->outputs()[i], out[i], content(stem, compiled->outputs()[i].id));
}

TEST(pool_peer, has_the_same_results) {
  const char* folder = std::getenv("PARTITA_POOL_CASES");
  if (folder == nullptr)
    GTEST_SKIP() << "PARTITA_POOL_CASES names no folder; tests/integration/pool_torch.sh makes one";
  const std::vector<std::string> files = json_files(folder);
  EXPECT_FALSE(files.empty());
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    expect_agreement(std::string(folder) + "/" + file.substr(0, file.size() - 5));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace partita::test
