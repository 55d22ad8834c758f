// SPDX-License-Identifier: Apache-2.0
// Operators that lower to more than one obvious step, in layouts that are not dense, against their references.
#include <gtest/gtest.h>

#include <limits>

#include "passes/lower/lower.hpp"
#include "passes/optimize/fuse_loops.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

/// Runs the text's operators, lowered and fused, and through references. `strides`: of tensors by id.
void expect_reference(std::string_view text, const std::vector<std::pair<uint64_t, Dims>>& strides = {}) {
  SCOPED_TRACE(text);
  const graph g = final_graph_of(text);
  if (!g.form()) return;
  const Partition p = one_partition(g);
  Ports ports = ports_of(p);
  for (auto* side : {&ports.inputs, &ports.outputs})
    for (logical_tensor& t : *side)
      for (const auto& [id, own] : strides)
        if (t.id == id) t = logical_tensor(id, t.dtype, Dims(t.dims), own);
  Tensors inputs = input_data(g, 7);
  for (const logical_tensor& t : ports.inputs) {
    if (!t.strides_known() || t.strides == inputs.at(t.id).desc.strides) continue;
    Storage storage(t);
    for (size_t value = 0; value < g.form()->values.size(); ++value)
      if (g.form()->values[value].desc.id == t.id)
        for (int64_t i = 0; i < static_cast<int64_t>(storage.bytes * 8) / bits_of(t.dtype); ++i)
          store_from_double(storage.data.get(), t.dtype, i, static_cast<double>(i % 7) - 3);
    inputs[t.id] = std::move(storage);
  }
  Program program = lowered(p, ports);
  fuse_loops(program, interpreter_joins);
  make_kernels(program);
  const Tensors got = executed(program, inputs);
  const auto expected = run_reference(p, ports.given(), inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().text();
  for (const auto& [id, storage] : *expected) {
    const Difference d = compare(got.at(id), storage, tolerance_of(p));
    EXPECT_EQ(d.wrong, 0) << "tensor " << id << ": " << d.first;
  }
}

TEST(lower, reshapes_between_any_two_layouts) {
  constexpr std::string_view text = "%1: f32[3,4] = StaticReshape(%0: f32[2,6]) {shape=[3,4], special_zero=false}";
  expect_reference(text);
  expect_reference(text, {{0, {1, 2}}});
  expect_reference(text, {{1, {1, 3}}});
  expect_reference(text, {{0, {1, 2}}, {1, {5, 1}}});
  expect_reference(text, {{0, {9, 1}}, {1, {1, 3}}});
}

TEST(lower, transposes_by_any_order) {
  expect_reference("%1: f32[4,3,2] = StaticTranspose(%0: f32[2,3,4]) {order=[]}");
  expect_reference("%1: f32[4,2,3] = StaticTranspose(%0: f32[2,3,4]) {order=[-1,-3,-2]}", {{0, {1, 2, 7}}});
  expect_reference("%1: f32[3,2,4] = StaticTranspose(%0: f32[2,3,4]) {order=[1,0,2]}", {{1, {1, 3, 6}}});
}

TEST(lower, concatenates_into_any_layout) {
  constexpr std::string_view text = "%3: f32[2,6] = Concat(%0: f32[2,1], %1: f32[2,3], %2: f32[2,2]) {axis=-1}";
  expect_reference(text);
  expect_reference(text, {{3, {1, 2}}, {1, {1, 2}}});
  expect_reference(text, {{3, {20, 3}}});
  expect_reference("%2: f32[4,2] = Concat(%0: f32[0,2], %1: f32[4,2]) {axis=0}");
  expect_reference("%1: f32[4,2] = Concat(%0: f32[2,2], %0) {axis=0}");
}

TEST(lower, quantizes_along_an_axis) {
  expect_reference(
      "%1: s8[2,3] = Quantize(%0: f32[2,3]) {qtype=per_channel, axis=-1, scales=[0.1,0.2,0.05], zps=[1,-2,3]}");
  expect_reference("%1: u8[2,3] = Quantize(%0: f32[2,3]) {qtype=per_channel, axis=0, scales=[0.1,0.02], zps=[1,2]}",
                   {{0, {1, 2}}, {1, {4, 1}}});
  expect_reference("%1: f8_e4m3[2,3] = Quantize(%0: f32[2,3]) {scales=[0.1]}");
  expect_reference(
      "%1: f32[2,3] = Dequantize(%0: s8[2,3]) {qtype=per_channel, axis=1, scales=[0.1,0.2,0.3], zps=[1,2,3]}",
      {{1, {1, 2}}});
}

TEST(lower, dequantizes_weights_of_a_grouped_transposed_convolution) {
  // Two groups along axis 0, three entries each.
  expect_reference(
      "%1: f32[4,3,2,2] = Dequantize(%0: s8[4,3,2,2]) {qtype=per_channel, axis=1, "
      "scales=[0.1,0.2,0.3,0.4,0.5,0.6], zps=[1,2,3,4,5,6]}");
  expect_reference(
      "%1: f32[2,3,2,2] = Dequantize(%0: s8[2,3,2,2]) {qtype=per_channel, axis=1, "
      "scales=[0.1,0.2,0.3,0.4,0.5,0.6]}",
      {{0, {1, 2, 6, 12}}});
}

TEST(lower, dequantizes_blocks_of_four_bit_numbers) {
  expect_reference("%2: f32[4,6] = DynamicDequantize(%0: s4[4,6], %1: f32[2,6]) {qtype=per_group, group_shape=[2,1]}");
  expect_reference(
      "%3: bf16[4,6] = DynamicDequantize(%0: u4[4,6], %1: bf16[2,3], %2: u4[2,3]) "
      "{qtype=per_group, group_shape=[2,2]}");
  expect_reference(
      "%3: f32[4,6] = DynamicDequantize(%0: s8[4,6], %1: f32[1,2], %2: s32[1]) "
      "{qtype=per_group, group_shape=[4,3]}",
      {{0, {1, 4}}, {3, {1, 4}}});
}

/// In whatever order they lie: no interpreter has to find half bytes.
TEST(lower, zero_points_of_four_bits_that_many_elements_share_become_bytes) {
  for (const char* type : {"s4", "u4"}) {
    const std::string shared = str("%3: f32[4,6] = DynamicDequantize(%0: ", type, "[4,6], %1: f32[4,3], %2: ", type,
                                   "[4,3]) {qtype=per_group, group_shape=[1,2]}");
    expect_reference(shared);
    expect_reference(shared, {{2, {1, 4}}});
    expect_reference(shared, {{2, {7, 2}}});
    const Partition p = one_partition(final_graph_of(shared));
    const Program program = lowered(p, ports_of(p));
    ASSERT_EQ(program.steps.size(), 2u);
    EXPECT_EQ(bits_of(program.steps[1].problem.in[2].dtype), 8);
    const Partition single = one_partition(
        final_graph_of(str("%3: f32[4,6] = DynamicDequantize(%0: ", type, "[4,6], %1: f32[1], %2: ", type, "[1]) {}")));
    EXPECT_EQ(lowered(single, ports_of(single)).steps.size(), 1u);
  }
}

TEST(lower, quantizes_by_factors_that_arrive_as_tensors) {
  expect_reference("%3: u8[2,3] = DynamicQuantize(%0: f32[2,3], %1: f32[3], %2: s32[3]) {qtype=per_channel, axis=1}");
  expect_reference("%2: s8[2,3] = DynamicQuantize(%0: f32[2,3], %1: f32[1]) {qtype=per_tensor}");
  expect_reference("%3: f32[2,3] = DynamicDequantize(%0: u8[2,3], %1: f32[2], %2: u8[1]) {qtype=per_channel, axis=0}");
  expect_reference(
      "%3: f32[2,3] = DynamicDequantize(%0: u8[2,3], %1: f32[2,1], %2: u8[2]) {qtype=per_channel, axis=0}");
}

TEST(lower, quantizes_to_f8_by_factors_that_arrive_as_tensors) {
  expect_reference("%2: f8_e4m3[2,3] = DynamicQuantize(%0: f32[2,3], %1: f32[1])");
  expect_reference("%2: f8_e5m2[2,3,4] = DynamicQuantize(%0: f32[2,3,4], %1: f32[2,3]) {mask=3}");
  expect_reference("%2: bf16[2,3,4] = DynamicDequantize(%0: f8_e4m3[2,3,4], %1: bf16[2,3]) {mask=3}");
}

TEST(lower, quantizes_by_factors_along_the_axes_of_a_mask) {
  expect_reference("%3: u8[2,3,4] = DynamicQuantize(%0: f32[2,3,4], %1: f32[2,3], %2: s32[2,3]) {mask=3}");
  expect_reference("%2: s8[2,3,4] = DynamicQuantize(%0: f32[2,3,4], %1: f32[2,1,4]) {mask=5}", {{1, {8, 8, 2}}});
  expect_reference("%2: s8[2,3,4] = DynamicQuantize(%0: f32[2,3,4], %1: f32[]) {mask=0}");
  expect_reference("%3: f32[2,3,4] = DynamicDequantize(%0: u8[2,3,4], %1: f32[2,3,4], %2: u8[1]) {mask=7}");
  expect_reference(
      "%3: bf16[2,4,6] = DynamicDequantize(%0: s4[2,4,6], %1: bf16[2,4,2], %2: s4[2,4,2]) {mask=7, "
      "group_shape=[1,1,3]}");
  expect_reference("%2: f32[2,4,6] = DynamicDequantize(%0: u4[2,4,6], %1: f32[2,2]) {mask=6, group_shape=[2,2,3]}");
}

TEST(lower, builds_masks_from_indices) {
  expect_reference(
      "%1: s32[5,5] = GenIndex(%0: f32[5,5]) {axis=-2}; %2: s32[5,5] = GenIndex(%0) {axis=1}; "
      "%3: boolean[5,5] = GreaterEqual(%1, %2); %5: f32[5,5] = Select(%3, %0, %4: f32[1])");
  expect_reference(
      "%1: s32[5,5] = GenIndex(%0: bf16[5,5]) {axis=0}; %3: s32[5,5] = Add(%1, %2: s32[1,5]); "
      "%4: s32[5,5] = Subtract(%3, %1); %6: boolean[5,5] = GreaterEqual(%4, %5: s32[])",
      {{6, {1, 5}}});
}

TEST(lower, adds_any_bias_to_a_product) {
  expect_reference("%3: f32[4,5] = MatMul(%0: f32[4,3], %1: f32[3,5], %2: f32[4,1])");
  expect_reference("%3: f32[4,5] = MatMul(%0: f32[4,3], %1: f32[3,5], %2: f32[5])");
  expect_reference("%3: f32[4,5] = MatMul(%0: f32[4,3], %1: f32[3,5], %2: f32[1])", {{3, {1, 4}}});
  expect_reference("%3: bf16[2,4,5] = MatMul(%0: bf16[2,4,3], %1: bf16[2,3,5], %2: bf16[2,1,5])");
  expect_reference("%3: f32[4,1] = MatMul(%0: f32[4,3], %1: f32[3,1], %2: f32[4,1])");
}

TEST(lower, products_with_vectors) {
  for (std::string_view type : {"f32", "bf16", "f16"}) {
    const auto text = [&](std::string_view dst, std::string_view a, std::string_view b, std::string_view attrs) {
      return str("%2: ", type, dst, " = MatMul(%0: ", type, a, ", %1: ", type, b, ") {", attrs, "}");
    };
    expect_reference(text("[1,5]", "[1,37]", "[37,5]", ""));
    expect_reference(text("[1,5]", "[37,1]", "[5,37]", "transpose_a=true, transpose_b=true"));
    expect_reference(text("[1,1,70]", "[1,1,19]", "[1,19,70]", ""), {{0, {57, 57, 3}}, {1, {1400, 1, 20}}});
    expect_reference(text("[41,1]", "[41,37]", "[37,1]", ""));
    expect_reference(text("[41,1]", "[37,41]", "[1,37]", "transpose_a=true, transpose_b=true"), {{1, {80, 2}}});
    expect_reference(text("[1,1]", "[1,67]", "[67,1]", ""));
    expect_reference(text("[6,7]", "[6,1]", "[1,7]", ""), {{2, {1, 6}}});
    expect_reference(text("[2,3,6,7]", "[3,1,6]", "[2,1,7,1]", "transpose_a=true, transpose_b=true"));
    // a matrix for each vector, also one between whose rows others lie; the same vector for several matrices
    expect_reference(text("[2,3,1,70]", "[2,3,1,64]", "[2,3,70,64]", "transpose_b=true"));
    expect_reference(text("[2,3,1,70]", "[2,3,1,64]", "[2,3,64,70]", ""), {{1, {13440, 70, 210, 1}}});
    expect_reference(text("[3,1,70]", "[1,1,64]", "[3,70,64]", "transpose_b=true"));
    expect_reference(text("[3,70,1]", "[3,70,64]", "[3,64,1]", ""));
    expect_reference(text("[2,3,70,1]", "[2,3,64,70]", "[3,1,64]", "transpose_a=true, transpose_b=true"));
    // vectors that share a matrix
    expect_reference(text("[2,3,1,70]", "[2,3,1,64]", "[2,1,70,64]", "transpose_b=true"));
  }
  expect_reference("%3: bf16[1,5] = MatMul(%0: bf16[1,37], %1: bf16[5,37], %2: bf16[5]) {transpose_b=true}");
  expect_reference("%3: f32[41,1] = MatMul(%0: f32[41,37], %1: f32[37,1], %2: f32[41,1])");
  expect_reference("%3: f32[6,7] = MatMul(%0: f32[6,1], %1: f32[1,7], %2: f32[7])");
}

TEST(lower, products_with_vectors_are_loops_unless_they_share_a_matrix) {
  if (!generates_code()) GTEST_SKIP() << "no code is generated here";
  const auto is_loop = [](std::string_view a, std::string_view b) {
    const CompiledGraph g = compiled_graph(str("%2 = MatMul(%0: f32", a, ", %1: f32", b, ") {transpose_b=true}"), 1);
    return g.executable->program.steps[0].problem.step == StepKind::loop;
  };
  EXPECT_TRUE(is_loop("[1,64]", "[70,64]"));
  EXPECT_TRUE(is_loop("[6,1,64]", "[6,70,64]"));
  EXPECT_TRUE(is_loop("[1,1,64]", "[6,70,64]"));
  EXPECT_FALSE(is_loop("[6,1,64]", "[1,70,64]")) << "rows of one product";
  EXPECT_FALSE(is_loop("[6,2,64]", "[6,70,64]"));
  EXPECT_FALSE(is_loop("[600,1,8]", "[600,8,8]")) << "small matrices";
}

TEST(lower, gradients_of_prelu_by_any_slope) {
  // As many slopes as elements, one a channel in both formats, one along the last axis, one, and any that numpy
  // spreads.
  const auto text = [](std::string_view images, std::string_view slope, std::string_view type, std::string_view rest) {
    return str("%3: ", type, images, ", %4: ", type, slope, " = PReLUBackward(%0: ", type, images, ", %1: ", type,
               slope, ", %2: ", type, images, ") {", rest, "}");
  };
  for (std::string_view type : {"f32", "bf16"}) {
    expect_reference(text("[2,3,4,5]", "[2,3,4,5]", type, "data_format=NCX"));
    expect_reference(text("[2,3,4,5]", "[3]", type, "data_format=NCX"));
    expect_reference(text("[2,4,5,3]", "[3]", type, "data_format=NXC"));
    expect_reference(text("[2,3,4,5]", "[1,1,1,1]", type, "data_format=NCX"));
    expect_reference(text("[2,3,4,5]", "[1,3,1,5]", type, "data_format=NCX"));
  }
  expect_reference(text("[2,3,4,5]", "[1,3,1,1]", "f32", "data_format=NCX"),
                   {{0, {60, 1, 15, 3}}, {3, {90, 1, 18, 3}}});
}

/// One window covers all cells. Strided data has equal maxima, of which the first counts.
TEST(lower, gradients_of_global_maxima) {
  const char* const kPlane =
      "%2: f32[2,3,5,6] = MaxPoolBackward(%0: f32[2,3,5,6], %1: f32[2,3,1,1]) {strides=[1,1], kernel=[5,6], "
      "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}";
  expect_reference(kPlane);
  expect_reference(kPlane, {{0, {1000, 200, 17, 2}}, {2, {200, 50, 9, 1}}});
  expect_reference(
      "%2: bf16[2,4,9] = MaxPoolBackward(%0: bf16[2,4,9], %1: bf16[2,4,1]) {strides=[4], kernel=[12], pads_begin=[2], "
      "pads_end=[1], data_format=NCX}; %3: bf16[2,4,9] = Abs(%2)");
  expect_reference(
      "%2: f32[2,15,16,3] = MaxPoolBackward(%0: f32[2,15,16,3], %1: f32[2,1,1,3]) {strides=[1,1], kernel=[15,16], "
      "pads_begin=[0,0], pads_end=[0,0], data_format=NXC}",
      {{0, {2000, 130, 5, 1}}});
  // a window that leaves cells out is another matter
  expect_reference(
      "%2: f32[2,3,5,6] = MaxPoolBackward(%0: f32[2,3,5,6], %1: f32[2,3,1,1]) {strides=[9,1], kernel=[4,6], "
      "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}");
}

TEST(lower, slices_of_one_element_are_not_folded) {
  for (const char* kind : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceL1", "ReduceL2"})
    for (const char* keep : {"true", "false"}) {
      const std::string text = str("%1 = ", kind, "(%0: bf16[3,1,5,1]) {axes=[1,3], keep_dims=", keep, "}");
      expect_reference(text);
      expect_reference(text, {{0, {1, 1, 3, 1}}});
      const CompiledGraph compiled = compiled_graph(text, 1);
      ASSERT_NE(compiled.executable, nullptr) << text;
      EXPECT_EQ(compiled.executable->program.steps.size(), 1U) << compiled.steps();
    }
}

TEST(lower, the_first_nan_is_a_global_maximum) {
  if (!generates_code()) GTEST_SKIP() << "oneDNN's kernel, which passes over NaN, comes first without generated code";
  CompiledGraph compiled = compiled_graph(
      "%2: f32[2,3,40] = MaxPoolBackward(%0: f32[2,3,40], %1: f32[2,3,1]) {strides=[40], kernel=[40], pads_begin=[0], "
      "pads_end=[0], data_format=NCX}",
      2);
  ASSERT_NE(compiled.executable, nullptr);
  for (int64_t at : {7, 9, 40, 80 + 39})
    store_from_double(compiled.inputs.at(0).data.get(), Dtype::f32, at, std::numeric_limits<double>::quiet_NaN());
  const Tensors results = compiled.run();
  EXPECT_EQ(compiled.difference(results), "");
  for (int64_t plane : {0, 1, 2})
    EXPECT_EQ(load_as_double(results.at(2).data.get(), Dtype::f32,
                             plane * 40 + (plane == 0   ? 7
                                           : plane == 1 ? 0
                                                        : 39)),
              load_as_double(compiled.inputs.at(1).data.get(), Dtype::f32, plane));
}

TEST(lower, refuses_groups_along_too_many_axes) {
  const Partition p = one_partition(
      final_graph_of("%2: f32[2,2,2,2,2,2,2] = DynamicDequantize(%0: s8[2,2,2,2,2,2,2], %1: f32[1,1,1,1,1,1,1]) "
                     "{qtype=per_group, group_shape=[2,2,2,2,2,2,2]}"));
  const Ports ports = ports_of(p);
  const auto specialized = specialize(p, ports.given());
  ASSERT_TRUE(specialized.ok()) << specialized.status().text();
  const auto program = lower(specialized->graph, {.isa = machine_isa()});
  EXPECT_EQ(program.status().code(), Code::unimplemented);
}

}  // namespace
}  // namespace partita::test
