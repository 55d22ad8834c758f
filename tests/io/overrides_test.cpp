// SPDX-License-Identifier: Apache-2.0
// Overrides on small graphs: the graph they give as text, or the message they give.
#include "src/io/overrides.hpp"

#include <gtest/gtest.h>

#include <set>

#include "src/base/text.hpp"
#include "src/io/dot.hpp"
#include "tests/support/graph_text.hpp"

namespace partita {
namespace {

logical_tensor f32(uint64_t id, const Dims& dims) { return logical_tensor(id, Dtype::f32, dims); }

graph graph_of(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops) {
    const Status added = g.add_op(o);
    EXPECT_TRUE(added.ok()) << added.text();
  }
  return g;
}

op convolution(uint64_t id, const logical_tensor& src, const logical_tensor& weights, const logical_tensor& dst) {
  op o(id, OpKind::Convolution, {src, weights}, {dst});
  for (Attr attr : {Attr::strides, Attr::dilations}) o.set_attr(attr, std::vector<int64_t>{1, 1});
  for (Attr attr : {Attr::pads_begin, Attr::pads_end}) o.set_attr(attr, std::vector<int64_t>{0, 0});
  return o.set_attr(Attr::data_format, std::string("NCX")).set_attr(Attr::weights_format, std::string("OIX"));
}

/// conv(0, 1) -> 2; relu -> 3; add with 4 (a residual) -> 5; add with 6 (one a channel) -> 7
graph residual_block() {
  return graph_of({convolution(10, f32(0, {4, 3, 8, 8}), f32(1, {5, 3, 3, 3}), f32(2, {4, 5, 6, 6})),
                   op(11, OpKind::ReLU, {f32(2, {4, 5, 6, 6})}, {f32(3, {4, 5, 6, 6})}),
                   op(12, OpKind::Add, {f32(3, {4, 5, 6, 6}), f32(4, {4, 5, 6, 6})}, {f32(5, {4, 5, 6, 6})}),
                   op(13, OpKind::Add, {f32(5, {4, 5, 6, 6}), f32(6, {1, 5, 1, 1})}, {f32(7, {4, 5, 6, 6})})});
}

graph add_graph() {
  return graph_of({op(1, OpKind::Add, {f32(0, {2, 3}), f32(1, {2, 3})}, {f32(2, {2, 3})}),
                   op(2, OpKind::Tanh, {f32(2, {2, 3})}, {f32(3, {2, 3})})});
}

std::string text_with(const graph& g, const Overrides& o) {
  Result<graph> changed = apply_overrides(g, o);
  if (!changed.ok()) return changed.status().text();
  const Status finalized = changed->finalize();
  return finalized.ok() ? graph_to_text(*changed) : "finalize: " + finalized.text();
}

constexpr std::string_view kConvAttrs =
    " {dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], strides=[1,1], data_format=NCX, weights_format=OIX}";

std::string without_conv_attrs(std::string text) {
  const size_t at = text.find(kConvAttrs);
  return at == text.npos ? text : text.erase(at, kConvAttrs.size());
}

TEST(overrides, none_changes_nothing) {
  const graph g = residual_block();
  const Result<graph> same = apply_overrides(g, {});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->ops(), g.ops());
  EXPECT_TRUE(Overrides().empty());
  EXPECT_FALSE(Overrides{.mb = "1"}.empty());
}

TEST(overrides, shapes_of_inputs_go_through_the_graph) {
  EXPECT_EQ(without_conv_attrs(text_with(residual_block(), {.in_shapes = "0:2x3x10x9+4:2x5x8x7"})),
            "%2 = Convolution(%0: f32[2,3,10,9], %1: f32[5,3,3,3]) -> f32[2,5,8,7]\n"
            "%3 = ReLU(%2: f32[2,5,8,7]) -> f32[2,5,8,7]\n"
            "%5 = Add(%3: f32[2,5,8,7], %4: f32[2,5,8,7]) -> f32[2,5,8,7]\n"
            "%7 = Add(%5: f32[2,5,8,7], %6: f32[1,5,1,1]) -> f32[2,5,8,7]\n");
}

TEST(overrides, a_tag_or_strides_change_the_layout_of_an_input_and_what_follows) {
  EXPECT_EQ(text_with(add_graph(), {.in_shapes = "0:*ba"}),
            "%2 = Add(%0: f32[2,3] strides 1,2, %1: f32[2,3]) -> f32[2,3] strides 1,2\n"
            "%3 = Tanh(%2: f32[2,3] strides 1,2) -> f32[2,3] strides 1,2\n");
  EXPECT_EQ(text_with(add_graph(), {.in_shapes = "0:4x3*8x2+1:4x3*bx"}),
            "%2 = Add(%0: f32[4,3] strides 8,2, %1: f32[4,3] strides 1,4) -> f32[4,3]\n"
            "%3 = Tanh(%2: f32[4,3]) -> f32[4,3]\n");
  EXPECT_EQ(text_with(add_graph(), {.in_shapes = "0:-+1:-"}),
            "%2 = Add(%0: f32[], %1: f32[]) -> f32[]\n%3 = Tanh(%2: f32[]) -> f32[]\n");
  EXPECT_EQ(text_with(add_graph(), {.in_shapes = "0:0+1:0"}),
            "%2 = Add(%0: f32[0], %1: f32[0]) -> f32[0]\n%3 = Tanh(%2: f32[0]) -> f32[0]\n");
}

TEST(overrides, results_keep_their_layout_where_nothing_changed) {
  graph g = graph_of({op(1, OpKind::Tanh, {f32(0, {2, 3})}, {logical_tensor(1, Dtype::f32, {2, 3}, Dims{1, 2})}),
                      op(2, OpKind::Tanh, {f32(5, {2, 3})}, {f32(6, {2, 3})})});
  EXPECT_EQ(text_with(g, {.in_shapes = "5:7"}),
            "%1 = Tanh(%0: f32[2,3]) -> f32[2,3] strides 1,2\n%6 = Tanh(%5: f32[7]) -> f32[7]\n");
}

TEST(overrides, a_shape_for_a_result_is_checked) {
  EXPECT_EQ(text_with(add_graph(), {.in_shapes = "3:2x3*ba"}),
            "%2 = Add(%0: f32[2,3], %1: f32[2,3]) -> f32[2,3]\n%3 = Tanh(%2: f32[2,3]) -> f32[2,3] strides 1,2\n");
  const std::string error = text_with(add_graph(), {.in_shapes = "3:2x4"});
  EXPECT_TRUE(error.starts_with("op 2 (Tanh): ")) << error;
}

TEST(overrides, attributes_are_set_by_the_type_the_operator_gives_them) {
  EXPECT_EQ(without_conv_attrs(
                text_with(residual_block(), {.in_shapes = "4:4x5x8x8", .op_attrs = "10:pads_begin:1x1*pads_end:1x1"})),
            "%2 = Convolution(%0: f32[4,3,8,8], %1: f32[5,3,3,3]) {dilations=[1,1], pads_begin=[1,1], pads_end=[1,1], "
            "strides=[1,1], data_format=NCX, weights_format=OIX} -> f32[4,5,8,8]\n"
            "%3 = ReLU(%2: f32[4,5,8,8]) -> f32[4,5,8,8]\n"
            "%5 = Add(%3: f32[4,5,8,8], %4: f32[4,5,8,8]) -> f32[4,5,8,8]\n"
            "%7 = Add(%5: f32[4,5,8,8], %6: f32[1,5,1,1]) -> f32[4,5,8,8]\n");
  const graph reduce = graph_of(
      {op(1, OpKind::ReduceSum, {f32(0, {2, 3})}, {f32(1, {2})}).set_attr(Attr::axes, std::vector<int64_t>{1})});
  EXPECT_EQ(text_with(reduce, {.op_attrs = "1:axes:0x-1*keep_dims:true"}),
            "%1 = ReduceSum(%0: f32[2,3]) {axes=[0,-1], keep_dims=true} -> f32[1,1]\n");
  const graph quantize = graph_of({op(1, OpKind::Quantize, {f32(0, {2, 3})}, {logical_tensor(1, Dtype::s8, {2, 3})})
                                       .set_attr(Attr::scales, std::vector<float>{1})
                                       .set_attr(Attr::qtype, std::string("per_tensor"))});
  EXPECT_EQ(text_with(quantize, {.op_attrs = "1:scales:1e+05x0.5*qtype:per_channel*axis:0"}),
            "%1 = Quantize(%0: f32[2,3]) {scales=[100000,0.5], axis=0, qtype=per_channel} -> s8[2,3]\n");
}

TEST(overrides, the_batch_goes_to_the_inputs_that_carry_it) {
  EXPECT_EQ(without_conv_attrs(text_with(residual_block(), {.mb = "2"})),
            "%2 = Convolution(%0: f32[2,3,8,8], %1: f32[5,3,3,3]) -> f32[2,5,6,6]\n"
            "%3 = ReLU(%2: f32[2,5,6,6]) -> f32[2,5,6,6]\n"
            "%5 = Add(%3: f32[2,5,6,6], %4: f32[2,5,6,6]) -> f32[2,5,6,6]\n"
            "%7 = Add(%5: f32[2,5,6,6], %6: f32[1,5,1,1]) -> f32[2,5,6,6]\n");
  const graph matmul = graph_of({op(1, OpKind::MatMul, {f32(0, {4, 8}), f32(1, {8, 4})}, {f32(2, {4, 4})})});
  EXPECT_EQ(text_with(matmul, {.in_shapes = "0:3x8", .mb = "7"}),
            "%2 = MatMul(%0: f32[7,8], %1: f32[8,4]) -> f32[7,4]\n");
  EXPECT_EQ(text_with(matmul, {.mb = "0"}), "%2 = MatMul(%0: f32[4,8], %1: f32[8,4]) -> f32[4,4]\n");
}

/// Prints what carries the new batch, 7, in dim 0.
std::string batched(std::string_view text) {
  Result<graph> g = test::graph_of(text);
  EXPECT_TRUE(g.ok()) << g.status().text();
  Result<graph> changed = apply_overrides(*g, {.mb = "7"});
  if (!changed.ok()) return changed.status().text();
  const Status finalized = changed->finalize();
  EXPECT_TRUE(finalized.ok()) << finalized.text();
  std::set<uint64_t> ids;
  for (const op& o : changed->ops())
    for (const auto* side : {&o.inputs, &o.outputs})
      for (const logical_tensor& t : *side)
        if (t.rank() > 0 && t.dims[0] == 7) ids.insert(t.id);
  std::string list;
  for (uint64_t id : ids) list += str(list.empty() ? "" : " ", id);
  return list;
}

TEST(overrides, an_update_of_weights_leaves_them_as_they_are) {
  // y = x w; dw = x^T dy; w - 0.1 dw
  EXPECT_EQ(batched("%2: f32[4,8] = MatMul(%0: f32[4,6], %1: f32[6,8])\n"
                    "%4: f32[6,8] = MatMul(%0, %3: f32[4,8]) {transpose_a=true}\n"
                    "%6: f32[6,8] = Multiply(%4, %5: f32[1])\n"
                    "%7: f32[6,8] = Subtract(%1, %6)"),
            "0 2 3");
  // The same for a convolution, and with momentum as large as the weights.
  EXPECT_EQ(batched("%2: f32[2,4,6,6] = Convolution(%0: f32[2,3,6,6], %1: f32[4,3,1,1]) {strides=[1,1], "
                    "dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], data_format=NCX, weights_format=OIX}\n"
                    "%4: f32[4,3,1,1] = ConvolutionBackwardWeights(%0, %3: f32[2,4,6,6]) {strides=[1,1], "
                    "dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], data_format=NCX, weights_format=OIX, "
                    "weights_shape=[4,3,1,1]}\n"
                    "%6: f32[4,3,1,1] = Add(%4, %5: f32[4,3,1,1])\n"
                    "%7: f32[4,3,1,1] = Subtract(%1, %6)"),
            "0 2 3");
}

TEST(overrides, weights_that_are_converted_first_leave_the_batch_to_others) {
  // 4 is the batch and the number of rows of the weights.
  EXPECT_EQ(batched("%1: f32[4,4] = Dequantize(%0: s8[4,4]) {scales=[0.5]}\n"
                    "%2: f32[4,4] = Add(%1, %8: f32[4,4])\n"
                    "%3: bf16[4,4] = TypeCast(%1)\n"
                    "%5: bf16[4,4] = MatMul(%4: bf16[4,4], %3)"),
            "4 5");
}

TEST(overrides, parameters_of_one_item_keep_it) {
  EXPECT_EQ(batched("%3: f32[1,8] = MatMul(%0: f32[1,6], %1: f32[6,8], %2: f32[1,8])\n"
                    "%5: f32[1,8] = PReLU(%3, %4: f32[1,8])"),
            "0 3 5");
}

TEST(overrides, the_batch_goes_through_gradients_of_products) {
  const std::string_view attrs =
      " {strides=[1,1], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], data_format=NCX, weights_format=OIX";
  EXPECT_EQ(batched(str("%2: f32[2,3,6,6] = ConvolutionBackwardData(%0: f32[2,4,6,6], %1: f32[4,3,1,1])", attrs,
                        ", dst_shape=[2,3,6,6]}; %3: f32[2,3,6,6] = ReLUBackward(%4: f32[2,3,6,6], %2)")),
            "0 2 3 4");
  EXPECT_EQ(batched(str("%2: f32[2,3,6,6] = ConvolutionBackwardData(%0: f32[2,4,6,6], %1: f32[4,3,1,1])", attrs,
                        "}; %3: f32[2,3,6,6] = ReLUBackward(%4: f32[2,3,6,6], %2)")),
            "0 2 3 4")
      << "the result tells the shape";
  EXPECT_EQ(batched(str("%2: f32[4,3,1,1] = ConvolutionBackwardWeights(%0: f32[2,3,6,6], %1: f32[2,4,6,6])", attrs,
                        "}; %3: f32[4] = BiasAddBackward(%1) {data_format=NCX}")),
            "0 1");
}

TEST(overrides, the_batch_is_changed_where_attributes_repeat_it) {
  const graph g = graph_of({op(1, OpKind::StaticReshape, {f32(0, {4, 6})}, {f32(1, {4, 2, 3})})
                                .set_attr(Attr::shape, std::vector<int64_t>{4, 2, 3})
                                .set_attr(Attr::special_zero, false)});
  EXPECT_EQ(text_with(g, {.mb = "2"}),
            "%1 = StaticReshape(%0: f32[2,6]) {shape=[2,2,3], special_zero=false} -> f32[2,2,3]\n");
}

TEST(overrides, a_graph_without_batch_says_so) {
  const graph g = graph_of(
      {op(1, OpKind::ReduceSum, {f32(0, {2, 3})}, {f32(1, {3})}).set_attr(Attr::axes, std::vector<int64_t>{0})});
  EXPECT_EQ(text_with(g, {.mb = "2"}), "--mb, character 1: no input of the graph carries the batch in dim 0");
}

TEST(overrides, scales_are_resized_with_the_channels) {
  const graph g = graph_of({op(1, OpKind::Dequantize, {logical_tensor(0, Dtype::s8, {4, 2})}, {f32(1, {4, 2})})
                                .set_attr(Attr::scales, std::vector<float>{0.5f, 2})
                                .set_attr(Attr::zps, std::vector<int64_t>{3, 4})
                                .set_attr(Attr::qtype, std::string("per_channel"))});
  EXPECT_EQ(
      text_with(g, {.in_shapes = "0:4x5"}),
      "%1 = Dequantize(%0: s8[4,5]) {scales=[0.5,2,0.5,2,0.5], zps=[3,4,0,0,0], qtype=per_channel} -> f32[4,5]\n");
  EXPECT_EQ(text_with(g, {.in_shapes = "0:4x1"}),
            "%1 = Dequantize(%0: s8[4,1]) {scales=[0.5], zps=[3], qtype=per_channel} -> f32[4,1]\n");
  EXPECT_EQ(text_with(g, {.in_shapes = "0:1x99999999"}),
            "op 1 (Dequantize): scales for 99999999 channels, expected at most 16777216");
}

TEST(overrides, a_group_follows_from_the_source_and_its_scales) {
  const graph g = graph_of(
      {op(1, OpKind::DynamicDequantize, {logical_tensor(0, Dtype::s8, {8, 6}), f32(1, {2, 6})}, {f32(2, {8, 6})})
           .set_attr(Attr::group_shape, std::vector<int64_t>{4, 1})
           .set_attr(Attr::axis, int64_t{0})
           .set_attr(Attr::qtype, std::string("per_group"))});
  EXPECT_EQ(
      text_with(g, {.in_shapes = "0:16x3+1:2x3"}),
      "%2 = DynamicDequantize(%0: s8[16,3], %1: f32[2,3]) {axis=0, group_shape=[8,1], qtype=per_group} -> f32[16,3]\n");
}

TEST(overrides, a_kind_changes_within_its_family) {
  EXPECT_EQ(text_with(add_graph(), {.op_attrs = "2:alpha:0.5", .op_kind = "1:Maximum+2:LeakyReLU"}),
            "%2 = Maximum(%0: f32[2,3], %1: f32[2,3]) -> f32[2,3]\n"
            "%3 = LeakyReLU(%2: f32[2,3]) {alpha=0.5} -> f32[2,3]\n");
  EXPECT_EQ(
      text_with(add_graph(), {.op_kind = "2:Add"}),
      "--op-kind, character 3: Tanh is element-wise with one source, Add is element-wise with two sources; a kind "
      "changes only within one of the element-wise families");
  EXPECT_EQ(text_with(add_graph(), {.op_kind = "2:SoftMax"}),
            "--op-kind, character 3: Tanh is element-wise with one source, SoftMax is not element-wise; a kind changes "
            "only within one of the element-wise families");
  EXPECT_EQ(text_with(add_graph(), {.op_kind = "2:Tanhh"}),
            "--op-kind, character 3: unknown operator kind `Tanhh`, did you mean `Tanh`?");
}

TEST(overrides, attributes_of_the_former_kind_are_dropped) {
  const graph g = graph_of({op(1, OpKind::LeakyReLU, {f32(0, {2})}, {f32(1, {2})}).set_attr(Attr::alpha, 0.5f)});
  EXPECT_EQ(text_with(g, {.op_kind = "1:Sqrt"}), "%1 = Sqrt(%0: f32[2]) -> f32[2]\n");
}

TEST(overrides, an_operator_can_be_left_out) {
  EXPECT_EQ(without_conv_attrs(text_with(residual_block(), {.op_kind = "11:undef+13:undef"})),
            "%2 = Convolution(%0: f32[4,3,8,8], %1: f32[5,3,3,3]) -> f32[4,5,6,6]\n"
            "%5 = Add(%2: f32[4,5,6,6], %4: f32[4,5,6,6]) -> f32[4,5,6,6]\n");
  EXPECT_EQ(text_with(add_graph(), {.op_kind = "1:undef"}),
            "--op-kind, character 3: op 1 (Add) cannot be left out: exactly one of its two sources must be made inside "
            "the graph");
  const graph single = graph_of({op(1, OpKind::Tanh, {f32(0, {2})}, {f32(1, {2})})});
  EXPECT_EQ(text_with(single, {.op_kind = "1:undef"}),
            "--op-kind, character 3: op 1 (Tanh) cannot be left out: nothing would remain of its branch");
}

TEST(overrides, one_type_for_the_whole_graph_spares_what_must_keep_its_own) {
  EXPECT_EQ(text_with(add_graph(), {.dt = "bf16"}),
            "%2 = Add(%0: bf16[2,3], %1: bf16[2,3]) -> bf16[2,3]\n%3 = Tanh(%2: bf16[2,3]) -> bf16[2,3]\n");
  const graph norm = graph_of({op(1, OpKind::LayerNorm, {f32(0, {2, 3}), f32(1, {3}), f32(2, {3})}, {f32(3, {2, 3})})
                                   .set_attr(Attr::keep_stats, false)});
  EXPECT_EQ(text_with(norm, {.dt = "f16"}),
            "%3 = LayerNorm(%0: f16[2,3], %1: f32[3], %2: f32[3]) {keep_stats=false} -> f16[2,3]\n");
  const graph cast = graph_of({op(1, OpKind::TypeCast, {f32(0, {2})}, {logical_tensor(1, Dtype::bf16, {2})})});
  EXPECT_EQ(text_with(cast, {.dt = "f16"}),
            "--dt, character 1: op 1 (TypeCast) converts types, so no single one fits the graph; give ID:type for each "
            "tensor");
  EXPECT_EQ(text_with(add_graph(), {.dt = "s8"}),
            "--dt, character 1: expected f32, bf16 or f16 for the whole graph, found s8");
}

TEST(overrides, types_and_properties_of_single_tensors) {
  EXPECT_EQ(text_with(add_graph(), {.dt = "2:bf16+0:bf16+1:bf16+3:bf16", .tensor_property = "1:constant"}),
            "%2 = Add(%0: bf16[2,3], %1: bf16[2,3] constant) -> bf16[2,3]\n%3 = Tanh(%2: bf16[2,3]) -> bf16[2,3]\n");
  const std::string mixed = text_with(add_graph(), {.dt = "3:bf16"});
  EXPECT_TRUE(mixed.starts_with("op 2 (Tanh): ")) << mixed;
}

TEST(overrides, the_math_mode_is_that_of_the_graph) {
  const Result<graph> g = apply_overrides(add_graph(), {.attr_fpmath = "bf16:true"});
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->fpmath_mode(), FpMath::bf16);
  EXPECT_TRUE(g->fpmath_apply_to_int());
  EXPECT_EQ(text_with(add_graph(), {.attr_fpmath = "fast"}),
            "--attr-fpmath, character 1: expected strict, bf16, f16, any or tf32, found `fast`");
  EXPECT_EQ(text_with(add_graph(), {.attr_fpmath = "bf16:maybe"}),
            "--attr-fpmath, character 6: expected true, false, 0 or 1, found `maybe`");
}

TEST(overrides, bad_syntax_is_refused_at_its_character) {
  struct Case {
    std::string Overrides::*option;
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {&Overrides::in_shapes, "x", "--in-shapes, character 1: expected `ID:..`, found `x`"},
      {&Overrides::in_shapes, "0:2x3+", "--in-shapes, character 5: expected a dim, as in 2x3x4, found `3+`"},
      {&Overrides::in_shapes, "0:2xx3", "--in-shapes, character 5: expected a dim, as in 2x3x4, found ``"},
      {&Overrides::in_shapes, "0:2x-3", "--in-shapes, character 5: expected a dim, as in 2x3x4, found `-3`"},
      {&Overrides::in_shapes, "0:", "--in-shapes, character 3: expected a dim, as in 2x3x4, found ``"},
      {&Overrides::in_shapes, "0:99999999999999999999",
       "--in-shapes, character 3: expected a dim, as in 2x3x4, found `99999999999999999999`"},
      {&Overrides::in_shapes, "0:1x1x1x1x1x1x1x1x1x1x1x1x1", "--in-shapes, character 3: expected at most 12 axes"},
      {&Overrides::in_shapes, "0:2x3*",
       "--in-shapes, character 7: expected a tag, as in acdb, or strides, as in 6x1, after `*`"},
      {&Overrides::in_shapes, "0:2x3*abc",
       "--in-shapes, character 7: expected the letters of 2 axes, each once, found `abc` (blocked layouts have no "
       "strides)"},
      {&Overrides::in_shapes, "0:2x3*aa",
       "--in-shapes, character 7: expected the letters of 2 axes, each once, found `aa` (blocked layouts have no "
       "strides)"},
      {&Overrides::in_shapes, "0:2x3*1", "--in-shapes, character 3: expected 2 strides, found 1"},
      {&Overrides::in_shapes, "1:2x3+9:2", "--in-shapes, character 7: no tensor has the id 9"},
      {&Overrides::in_shapes, "2:2x3",
       "--in-shapes, character 1: tensor 2 is made by op 1 (Add); only inputs and results of the graph take a shape"},
      {&Overrides::in_shapes, "0:4611686018427387904x2",
       "--in-shapes, character 3: the tensor is too large: f32[4611686018427387904,2]"},
      {&Overrides::op_attrs, "1:auto_broadcast",
       "--op-attrs, character 3: expected `name:value`, found `auto_broadcast`"},
      {&Overrides::op_attrs, "1:auto_brodcast:none",
       "--op-attrs, character 3: Add has no attribute `auto_brodcast`, it has auto_broadcast, did you mean "
       "`auto_broadcast`?"},
      {&Overrides::op_attrs, "7:axis:1", "--op-attrs, character 1: no operator has the id 7"},
      {&Overrides::mb, "two", "--mb, character 1: expected an integer, found `two`"},
      {&Overrides::mb, "-1", "--mb, character 1: expected a positive number, found -1"},
      {&Overrides::dt, "f31", "--dt, character 1: expected a data type, as in f32, found `f31`"},
      {&Overrides::dt, "0:f32+1:f31", "--dt, character 9: expected a data type, as in f32, found `f31`"},
      {&Overrides::dt, "5:f32", "--dt, character 1: no tensor has the id 5"},
      {&Overrides::op_kind, "ReLU", "--op-kind, character 1: expected `ID:..`, found `ReLU`"},
      {&Overrides::tensor_property, "0:const",
       "--tensor-property, character 3: expected undef, variable, constant or host_scalar, found `const`"},
  };
  for (const Case& c : cases) {
    Overrides o;
    o.*c.option = c.text;
    EXPECT_EQ(text_with(add_graph(), o), c.message) << c.text;
  }
}

TEST(overrides, values_that_do_not_fit_their_attribute_are_refused) {
  const graph g = graph_of(
      {op(1, OpKind::ReduceSum, {f32(0, {2, 3})}, {f32(1, {2})}).set_attr(Attr::axes, std::vector<int64_t>{1})});
  EXPECT_EQ(text_with(g, {.op_attrs = "1:axes:1xa"}),
            "--op-attrs, character 10: expected integers, as in 1x1, found `a`");
  EXPECT_EQ(text_with(g, {.op_attrs = "1:keep_dims:2"}),
            "--op-attrs, character 13: expected true, false, 0 or 1, found `2`");
  const std::string range = text_with(g, {.op_attrs = "1:axes:5"});
  EXPECT_TRUE(range.starts_with("op 1 (ReduceSum): ")) << range;
}

TEST(overrides, shapes_that_do_not_fit_name_the_operator) {
  const std::string error = text_with(add_graph(), {.in_shapes = "0:4x3"});
  EXPECT_TRUE(error.starts_with("op 1 (Add): ")) << error;
}

TEST(overrides, sizes_beyond_what_memory_can_be_are_refused) {
  EXPECT_EQ(text_with(add_graph(), {.mb = "9223372036854775807"}),
            "op 1 (Add): tensor 0 is too large: f32[9223372036854775807,3]");
  EXPECT_EQ(text_with(add_graph(), {.in_shapes = "0:1099511627776x1+1:1x1099511627776"}),
            "op 1 (Add): tensor 2 is too large: f32[1099511627776,1099511627776]");
}

TEST(overrides, results_that_only_the_file_tells_are_kept) {
  const graph g = graph_of(
      {op(1, OpKind::Wildcard, {f32(0, {2, 3})}, {f32(1, {5})}), op(2, OpKind::ReLU, {f32(1, {5})}, {f32(2, {5})})});
  EXPECT_EQ(text_with(g, {.in_shapes = "0:4x3"}),
            "%1 = Wildcard(%0: f32[4,3]) -> f32[5]\n%2 = ReLU(%1: f32[5]) -> f32[5]\n");
}

}  // namespace
}  // namespace partita
