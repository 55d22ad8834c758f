// SPDX-License-Identifier: Apache-2.0
// Outputs with gaps between their elements, for every partition of the graphs of tests/data: each element is written,
// nothing between them is, and the numbers are those of dense outputs.
#include <gtest/gtest.h>

#include "partita/json.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "src/harness/prepared_graph.hpp"
#include "tests/support/graph_files.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

const std::string kFolder = PARTITA_SOURCE_DIR "/tests/data";

/// NaN in every floating type, and a number in each.
constexpr unsigned char kPatterns[] = {0xff, 0x2a};

logical_tensor with_gaps(const logical_tensor& t, Random& random) {
  return logical_tensor(t.id, t.dtype, t.dims, scattered_desc(t.dtype, t.dims, random).strides);
}

/// Which bytes belong to elements.
std::vector<bool> element_bytes(const logical_tensor& t) {
  std::vector<bool> inside(t.size_bytes(), false);
  const auto size = static_cast<std::ptrdiff_t>(bytes_for(t.dtype, 1));
  for (int64_t i = 0; i < t.elements(); ++i) {
    int64_t at = 0, rest = i;
    for (int axis = t.rank() - 1; axis >= 0; rest /= t.dims[axis--]) at += rest % t.dims[axis] * t.strides[axis];
    std::fill_n(inside.begin() + at * size, size, true);
  }
  return inside;
}

/// Two executions on differently filled memory: what was not written still differs.
std::string damage(const Storage& first, const Storage& second) {
  const std::vector<bool> inside = element_bytes(first.desc);
  const auto *a = static_cast<const unsigned char*>(first.data.get()),
             *b = static_cast<const unsigned char*>(second.data.get());
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] && a[i] != b[i]) return str("byte ", i, " belongs to an element and was not written");
    if (!inside[i] && (a[i] != kPatterns[0] || b[i] != kPatterns[1]))
      return str("byte ", i, " lies between the elements and was written");
  }
  return {};
}

std::vector<Storage> executed(const PreparedGraph::Part& part, const compiled_partition& compiled,
                              unsigned char pattern) {
  std::vector<Storage> made;
  std::vector<tensor> out;
  for (const logical_tensor& t : compiled.outputs()) {
    made.emplace_back(t);
    std::memset(made.back().data.get(), pattern, made.back().bytes);
    out.push_back(made.back().as_tensor());
  }
  const Status status = compiled.execute(stream(engine(), 1), part.bound.inputs, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return made;
}

Storage copy_of(const tensor& t) {
  Storage copy(t.desc);
  std::memcpy(copy.data.get(), t.data, copy.bytes);
  return copy;
}

void expect_tidy_outputs(const PreparedGraph::Part& part, Random& random) {
  std::vector<logical_tensor> outputs;
  for (const logical_tensor& t : part.bound.compiled.outputs()) outputs.push_back(with_gaps(t, random));
  const auto compiled = part.group.compile(part.bound.given_in, outputs, engine(), part.bound.constants);
  ASSERT_TRUE(compiled.ok()) << compiled.status().text();
  const auto first = executed(part, *compiled, kPatterns[0]), second = executed(part, *compiled, kPatterns[1]);
  const double tolerance = tolerance_of(*part.group.form());
  for (size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE(str("output ", first[i].desc.id, ", strides [", text_of(first[i].desc.strides), "]"));
    EXPECT_EQ(damage(first[i], second[i]), "");
    const Difference d = compare(first[i], copy_of(part.bound.outputs[i]), tolerance);
    EXPECT_EQ(d.wrong, 0) << d.first;
  }
}

/// The training graphs have no operator that the others lack, and are large.
std::vector<std::string> small_graphs() {
  std::vector<std::string> files = json_files(kFolder);
  std::erase_if(files, [](const std::string& file) { return file.starts_with("training/"); });
  return files;
}

class output_memory : public testing::TestWithParam<std::string> {};

TEST_P(output_memory, is_written_where_elements_are_and_nowhere_else) {
  Result<graph> g = graph_from_json_file(kFolder + "/" + GetParam());
  ASSERT_TRUE(g.ok()) << g.status().text();
  auto prepared = PreparedGraph::make(std::move(g).value(), Policy::fusion, 1);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->execute();
  ASSERT_TRUE(status.ok()) << status.text();
  Random random(1);
  for (const PreparedGraph::Part& part : prepared->parts()) {
    SCOPED_TRACE(str("partition ", part.group.pattern(), " of op ", part.group.ops()[0]));
    if (part.group.supported()) expect_tidy_outputs(part, random);
  }
}

INSTANTIATE_TEST_SUITE_P(tests_data, output_memory, testing::ValuesIn(small_graphs()), file_test_name);

}  // namespace
}  // namespace partita::test
