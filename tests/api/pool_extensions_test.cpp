// SPDX-License-Identifier: Apache-2.0
// Poolings beyond oneDNN Graph through the C++ interface: empty tensors, indices of no cell, views, tensors without a
// batch, and what is written of graphs that use none of it.
#include <gtest/gtest.h>

#include <vector>

#include "partita/json.hpp"
#include "partita/partita.hpp"
#include "src/base/text.hpp"
#include "src/harness/graph_run.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

#define WINDOW "strides=[2,2], kernel=[3,3], pads_begin=[0,1], pads_end=[1,0]"

struct Executed {
  Status status;
  std::vector<std::vector<float>> outputs;
};

/// Runs a graph of one partition; floats for f32 tensors, indices for others.
Executed run(std::string_view text, std::vector<std::vector<float>> floats, std::vector<int64_t> indices = {}) {
  const auto groups = final_graph_of(text).get_partitions();
  EXPECT_TRUE(groups.ok() && groups->size() == 1);
  const partition& p = groups->front();
  std::vector<logical_tensor> wanted = p.output_ports();
  for (logical_tensor& t : wanted)
    if (!t.shape_known()) t = logical_tensor(t.id, t.dtype, Layout::any);
  const auto compiled = p.compile(p.input_ports(), wanted, engine());
  if (!compiled.ok()) return {fail(compiled.status().code(), compiled.status().text()), {}};
  std::vector<tensor> in, out;
  size_t next = 0;
  for (const logical_tensor& t : compiled->inputs())
    in.emplace_back(t, t.dtype == Dtype::f32 ? static_cast<void*>(floats[next++].data()) : indices.data());
  std::vector<std::vector<float>> made;
  for (const logical_tensor& t : compiled->outputs())
    made.emplace_back(static_cast<size_t>(t.elements()) * (t.dtype == Dtype::s64 ? 2 : 1), -7.0f);
  for (size_t i = 0; i < made.size(); ++i) out.emplace_back(compiled->outputs()[i], made[i].data());
  Status status = compiled->execute(stream(engine()), in, out);
  return {std::move(status), std::move(made)};
}

std::vector<float> counted(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i * 7 % 11);
  return values;
}

TEST(pool_extensions, tensors_without_elements_are_no_error) {
  const char* graphs[] = {
      "%2, %3: s64 = MaxPool(%0: f32[0,5,5,3]) {" WINDOW ", rounding_type=ceil}",
      "%2, %3: s64 = MaxPool(%0: f32[2,0,5,5]) {" WINDOW ", data_format=NCX}",
      "%2 = AvgPool(%0: f32[0,5,5,3]) {" WINDOW ", exclude_pad=false, exclude_overhang=true}",
      "%2 = AvgPoolBackward(%0: f32[0,3,3,3]) {" WINDOW ", exclude_pad=true, divisor_override=3, src_shape=[0,6,6,3]}",
      "%2 = MaxPoolBackward(%0: f32[0,3,5,5], %1: f32[0,3,2,2]) {" WINDOW ", data_format=NCX}",
      "%2 = MaxPoolIndicesBackward(%0: f32[0,2,2,3], %1: s64[0,2,2,3]) {src_shape=[0,5,5,3]}",
      "%2 = MaxPoolIndicesBackward(%0: f32[1,0,2,2], %1: s32[1,0,2,2]) {src_shape=[1,0,5,5], data_format=NCX}",
      "%2 = AdaptiveAvgPool(%0: f32[0,5,5,3]) {sizes=[2,3]}",
      "%2 = AdaptiveAvgPoolBackward(%0: f32[0,3,2,3]) {src_shape=[0,3,5,5], data_format=NCX}",
  };
  for (const char* text : graphs) {
    const Executed made = run(text, {{}, {}});
    EXPECT_TRUE(made.status.ok()) << text << ": " << made.status.text();
  }
}

TEST(pool_extensions, windows_without_indices_leave_zeros) {
  const Executed made =
      run("%2 = MaxPoolIndicesBackward(%0: f32[1,1,0], %1: s64[1,1,0]) {src_shape=[1,1,3], "
          "data_format=NCX}",
          {{}});
  ASSERT_TRUE(made.status.ok()) << made.status.text();
  EXPECT_EQ(made.outputs[0], std::vector<float>(3, 0));
}

TEST(pool_extensions, an_index_of_no_cell_fails_with_its_place) {
  const char* text = "%2 = MaxPoolIndicesBackward(%0: f32[1,2,2], %1: s64[1,2,2]) {src_shape=[1,2,5], data_format=NCX}";
  EXPECT_TRUE(run(text, {{1, 2, 3, 4}}, {0, 4, -1, 2}).status.ok());
  for (const int64_t wrong : {int64_t{5}, int64_t{-2}, int64_t{1} << 33}) {
    const Executed made = run(text, {{1, 2, 3, 4}}, {0, 4, 3, wrong});
    EXPECT_EQ(made.status.code(), Code::invalid_arguments);
    EXPECT_NE(made.status.text().find(str("`indices` of window [1] of batch item 0, channel 1 is ", wrong,
                                          ", cells of its plane have 0 to 4, a window without cells has -1")),
              std::string::npos)
        << made.status.text();
  }
}

/// The same windows with and without the batch axis, with neighbours.
TEST(pool_extensions, a_missing_batch_changes_no_value) {
  const auto graph = [](std::string dims, std::string pooled) {
    return str("%1: f32[", dims, "] = Abs(%0: f32[", dims, "]); %2: f32[", pooled,
               "] = AvgPool(%1) {" WINDOW
               ", exclude_pad=false, exclude_overhang=true, rounding_type=ceil_inside, data_format=NCX}; %3: f32[",
               pooled, "] = Tanh(%2)");
  };
  const Executed with = run(graph("1,3,6,7", "1,3,3,4"), {counted(126)});
  const Executed without = run(graph("3,6,7", "3,3,4"), {counted(126)});
  ASSERT_TRUE(with.status.ok() && without.status.ok()) << with.status.text() << without.status.text();
  EXPECT_EQ(with.outputs, without.outputs);
}

/// A single operator whose tensors lie as told.
op single(OpKind kind, std::vector<logical_tensor> inputs, std::vector<logical_tensor> outputs) {
  op o(1, kind, std::move(inputs), std::move(outputs));
  return o.set_attr(Attr::data_format, std::string("NCX"));
}

TEST(pool_extensions, of_views_agree_with_the_references) {
  using Ints = std::vector<int64_t>;
  const auto windowed = [](op o) {
    return o.set_attr(Attr::kernel, Ints{3, 3})
        .set_attr(Attr::strides, Ints{2, 2})
        .set_attr(Attr::pads_begin, Ints{1, 1})
        .set_attr(Attr::pads_end, Ints{0, 1});
  };
  const Dims wide{2, 16, 6, 7}, narrow{2, 16, 3, 4}, last_wide{672, 1, 112, 16}, last_narrow{192, 1, 64, 16};
  const auto tensor_of = [](uint64_t id, Dtype dtype, const Dims& dims, const Dims& strides) {
    return logical_tensor(id, dtype, dims, strides);
  };
  std::vector<op> ops;
  // Every second column; channels last in memory; axes turned around and far apart.
  ops.push_back(windowed(single(OpKind::AvgPool, {tensor_of(0, Dtype::f32, wide, {1344, 84, 14, 2})},
                                {tensor_of(1, Dtype::f32, narrow, last_narrow)}))
                    .set_attr(Attr::exclude_pad, true)
                    .set_attr(Attr::divisor_override, int64_t{5}));
  ops.push_back(windowed(
      single(OpKind::MaxPool, {tensor_of(0, Dtype::bf16, wide, last_wide)},
             {tensor_of(1, Dtype::bf16, narrow, last_narrow), tensor_of(2, Dtype::s64, narrow, {1, 2, 32, 96})})));
  ops.push_back(
      single(OpKind::MaxPoolIndicesBackward,
             {tensor_of(0, Dtype::f32, narrow, last_narrow), tensor_of(1, Dtype::s64, narrow, {300, 18, 5, 1})},
             {tensor_of(2, Dtype::f32, wide, last_wide)}));
  ops.push_back(
      single(OpKind::MaxPoolIndicesBackward,
             {tensor_of(0, Dtype::f32, narrow, {1, 2, 32, 96}), tensor_of(1, Dtype::s32, narrow, last_narrow)},
             {tensor_of(2, Dtype::f32, wide, {2000, 100, 10, 1})}));
  ops.push_back(single(OpKind::AdaptiveAvgPoolBackward, {tensor_of(0, Dtype::f32, {3, 4, 5}, {40, 10, 2})},
                       {tensor_of(1, Dtype::f32, {3, 6, 7}, {1, 21, 3})})
                    .set_attr(Attr::spatial_axes, int64_t{2}));
  for (const op& o : ops) {
    SCOPED_TRACE(name_of(o.kind));
    graph g;
    const Status added = g.add_op(o);
    ASSERT_TRUE(added.ok()) << added.text();
    const auto report = run_graph(g, {.verify = true});
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->mismatch, "");
    EXPECT_TRUE(report->verified);
  }
}

TEST(pool_extensions, are_not_written_of_graphs_without_them) {
  const std::string plain = graph_to_json(final_graph_of("%2: f32[1,2,2,1] = AvgPoolBackward(%0: f32[1,2,2,1]) {" WINDOW
                                                         ", exclude_pad=true, src_shape=[1,4,4,1]}"));
  for (const char* name : {"rounding_type", "exclude_overhang", "divisor_override", "index_base", "spatial_axes"})
    EXPECT_EQ(plain.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace partita::test
