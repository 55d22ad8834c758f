// SPDX-License-Identifier: Apache-2.0
// Whole graphs as one operator: order of inputs and outputs, open dims, memory in between.
#include "src/compat/onnxruntime/graph_program.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "partita/json.hpp"
#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::compat::onnxruntime {
namespace {

std::shared_ptr<GraphProgram> program_of(std::string_view text) {
  const Result<graph> g = test::graph_of(text);
  EXPECT_TRUE(g.ok()) << g.status().text();
  auto made = GraphProgram::of(graph_to_json(*g));
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? *made : nullptr;
}

std::vector<std::vector<float>> run(GraphProgram& program, const std::vector<Dims>& dims,
                                    const std::vector<std::vector<float>>& inputs) {
  const auto plan = program.plan(dims);
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  if (!plan.ok()) return {};
  std::vector<std::vector<float>> results;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const auto& list : inputs) in.push_back(list.data());
  for (const logical_tensor& t : (*plan)->outputs()) results.emplace_back(static_cast<size_t>(t.elements()));
  for (auto& list : results) out.push_back(list.data());
  const size_t bytes = (*plan)->workspace_bytes();
  void* workspace = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
  const Status s = (*plan)->execute(in, out, workspace);
  std::free(workspace);
  EXPECT_TRUE(s.ok()) << s.text();
  return results;
}

TEST(ort_graph, names_inputs_and_outputs_by_first_appearance) {
  const auto program = program_of(
      "%5: f32[2] = Subtract(%9: f32[2], %3: f32[2])\n"
      "%4: f32[2] = Exp(%5: f32[2])\n"
      "%8: f32[2] = Subtract(%3: f32[2], %7: f32[2])");
  ASSERT_NE(program, nullptr);
  ASSERT_EQ(program->inputs().size(), 3u);
  EXPECT_EQ(program->inputs()[0].id, 9u);
  EXPECT_EQ(program->inputs()[1].id, 3u);
  EXPECT_EQ(program->inputs()[2].id, 7u);
  ASSERT_EQ(program->outputs().size(), 2u);
  EXPECT_EQ(program->outputs()[0].id, 4u);
  EXPECT_EQ(program->outputs()[1].id, 8u);
  const auto results = run(*program, {{2}, {2}, {2}}, {{3, 5}, {1, 2}, {10, 20}});
  EXPECT_FLOAT_EQ(results[0][1], std::exp(3.0f));
  EXPECT_EQ(results[1], (std::vector<float>{-9, -18}));
}

TEST(ort_graph, keeps_values_between_partitions_in_the_workspace) {
  const auto program = program_of(
      "%2: f32[2,2] = MatMul(%0: f32[2,2], %1: f32[2,2])\n"
      "%3: f32[2,2] = SoftMax(%2: f32[2,2])\n"
      "%4: f32[2,2] = MatMul(%3: f32[2,2], %1: f32[2,2])");
  ASSERT_NE(program, nullptr);
  const auto results = run(*program, {{2, 2}, {2, 2}}, {{1, 0, 0, 1}, {2, 2, 3, 3}});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FLOAT_EQ(results[0][0], 2.5f);
  EXPECT_FLOAT_EQ(results[0][3], 2.5f);
}

TEST(ort_graph, is_planned_again_for_other_dims_and_not_for_the_same) {
  const auto program = program_of("%1: f32[?,3] = Exp(%0: f32[?,3])");
  ASSERT_NE(program, nullptr);
  const std::vector<Dims> one{{1, 3}}, two{{2, 3}};
  const auto first = program->plan(one), again = program->plan(one), other = program->plan(two);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->get(), again->get());
  EXPECT_NE(first->get(), other->get());
  EXPECT_EQ((*other)->outputs()[0].dims, (Dims{2, 3}));
  EXPECT_EQ(run(*program, two, {{0, 0, 0, 0, 0, 0}})[0], (std::vector<float>(6, 1.0f)));
}

TEST(ort_graph, refuses_dims_and_layouts_that_do_not_fit) {
  const auto program = program_of("%2: f32[2] = Add(%0: f32[2], %1: f32[2])");
  ASSERT_NE(program, nullptr);
  EXPECT_FALSE(program->plan(std::vector<Dims>{{2}}).ok());
  EXPECT_FALSE(program->plan(std::vector<Dims>{{3}, {2}}).ok());
  EXPECT_FALSE(GraphProgram::of("{\"graph\": [{}]}").ok());
  const auto strided = GraphProgram::of(R"({"graph": [{"id": 7, "kind": "Exp", "attrs": {},
      "inputs": [{"id": 0, "dtype": "f32", "shape": [2, 2], "stride": [1, 2], "layout_type": "strided",
                  "property_type": "undef"}],
      "outputs": [{"id": 1, "dtype": "f32", "shape": [2, 2], "stride": [2, 1], "layout_type": "strided",
                   "property_type": "undef"}]}]})");
  ASSERT_FALSE(strided.ok());
  EXPECT_EQ(strided.status().text(), "tensor 0 (f32[2,2]) must be dense");
}

}  // namespace
}  // namespace partita::compat::onnxruntime
