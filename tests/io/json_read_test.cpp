// SPDX-License-Identifier: Apache-2.0
// What the reader takes although writers differ in it, and what it makes of it.
#include <gtest/gtest.h>

#include <cmath>

#include "partita/json.hpp"
#include "src/base/text.hpp"
#include "tests/io/softmax_json.hpp"

namespace partita {
namespace {

graph read(std::string_view text) {
  Result<graph> g = graph_from_json(text);
  EXPECT_TRUE(g.ok()) << g.status().text();
  return g.ok() ? std::move(g).value() : graph();
}

/// The first input of the softmax with other fields behind its id and type.
logical_tensor input_with(std::string_view fields) {
  std::string text = softmax_json_with(R"("shape": [2, 3], "stride": [3, 1],
         "layout_type": "strided", "property_type": "variable")",
                                       fields);
  text.replace(text.find("\"value\": 1"), 10, "\"value\": 0");  // an axis that every rank has
  const graph g = read(text);
  return g.ops().empty() ? logical_tensor() : g.ops()[0].inputs[0];
}

TEST(json_read, every_field_arrives) {
  const graph g = read(kSoftmaxJson);
  ASSERT_EQ(g.ops().size(), 1u);
  const op& o = g.ops()[0];
  EXPECT_EQ(o.id, 7u);
  EXPECT_EQ(o.name, "sm");
  EXPECT_EQ(o.kind, OpKind::SoftMax);
  EXPECT_EQ(o.attr(Attr::axis), AttrValue(int64_t{1}));
  EXPECT_EQ(o.attr(Attr::mode), AttrValue(std::string("none")));
  EXPECT_EQ(o.inputs, std::vector{logical_tensor(0, Dtype::f32, {2, 3}, Layout::strided, Property::variable)});
  EXPECT_EQ(o.outputs, std::vector{logical_tensor(1, Dtype::f32, {2, 3})});
  EXPECT_EQ(g.engine_kind(), EngineKind::cpu);
  EXPECT_EQ(g.fpmath_mode(), FpMath::strict);
  EXPECT_FALSE(g.fpmath_apply_to_int());
}

TEST(json_read, settings_may_be_missing_or_of_another_device) {
  EXPECT_EQ(read(R"({"graph": []})").engine_kind(), EngineKind::cpu);
  EXPECT_EQ(read(R"({"engine_kind": "any", "graph": []})").engine_kind(), EngineKind::any);
  EXPECT_EQ(read(R"({"engine_kind": "gpu", "graph": []})").engine_kind(), EngineKind::cpu);
  EXPECT_EQ(read(R"({"fpmath_mode": "tf32", "graph": []})").fpmath_mode(), FpMath::tf32);
  EXPECT_TRUE(read(R"({"fpmath_mode_apply_to_int": "true", "graph": []})").fpmath_apply_to_int());
  EXPECT_TRUE(read(R"({"fpmath_mode_apply_to_int": true, "graph": []})").fpmath_apply_to_int());
  EXPECT_FALSE(read(R"({"fpmath_mode_apply_to_int": "false", "graph": []})").fpmath_apply_to_int());
  read(R"({"input_ports": [1, 1, 99], "output_ports": [], "graph": []})");  // stale lists are common
}

TEST(json_read, optional_parts_of_an_operator_may_be_missing) {
  const graph g = read(R"({"graph": [{"kind": "ReLU", "id": 3,
      "inputs": [{"id": 0, "dtype": "f32"}], "outputs": [{"id": 1, "dtype": "f32"}]}]})");
  ASSERT_EQ(g.ops().size(), 1u);
  EXPECT_EQ(g.ops()[0].name, "");
  EXPECT_TRUE(g.ops()[0].attrs().empty());
  EXPECT_FALSE(g.ops()[0].inputs[0].rank_known);
}

TEST(json_read, a_bool_is_a_word_or_a_number) {
  for (const auto& [text, expected] : {std::pair{"0", false}, {"1", true}, {"true", true}, {"false", false}}) {
    const graph g = read(std::string(R"({"graph": [{"kind": "ReduceSum", "id": 3, "attrs": {
        "axes": {"value": [0], "type": "s64[]"}, "keep_dims": {"type": "bool", "value": )") +
                         text + R"(}},
        "inputs": [{"id": 0, "dtype": "f32"}], "outputs": [{"id": 1, "dtype": "f32"}]}]})");
    ASSERT_EQ(g.ops().size(), 1u);
    EXPECT_EQ(g.ops()[0].attr(Attr::keep_dims), AttrValue(expected));
    EXPECT_EQ(g.ops()[0].attr(Attr::axes), AttrValue(std::vector<int64_t>{0}));
  }
}

TEST(json_read, floats_may_be_written_as_integers_or_words) {
  for (const auto& [text, expected] : {std::pair{"1", 1.0f},
                                       {"1e-05", 1e-5f},
                                       {"-0.0", -0.0f},
                                       {"3.40282e+38", 3.40282e38f},
                                       {"18446744073709551615", 18446744073709551615.0f}}) {
    const graph g =
        read(std::string(R"({"graph": [{"kind": "Clamp", "id": 3, "attrs": {"min": {"type": "f32", "value": "-inf"},
        "max": {"type": "f32", "value": )") +
             text + R"(}},
        "inputs": [{"id": 0, "dtype": "f32"}], "outputs": [{"id": 1, "dtype": "f32"}]}]})");
    ASSERT_EQ(g.ops().size(), 1u);
    EXPECT_EQ(g.ops()[0].attr(Attr::max), AttrValue(expected));
    EXPECT_EQ(std::signbit(std::get<float>(g.ops()[0].attr(Attr::max))), std::signbit(expected));
    EXPECT_EQ(g.ops()[0].attr(Attr::min), AttrValue(-INFINITY));
  }
}

/// As C++ streams and Python print them; what stands in texts is no number.
TEST(json_read, numbers_that_json_does_not_have_may_stand_bare) {
  const auto reads = [](const std::string& attribute, const std::string& kind) {
    const graph g =
        read(R"({"graph": [{"kind": ")" + kind + R"(", "id": 3, "name": "a \"[inf, nan]\" -inf", "attrs": {)" +
             attribute + R"(}, "inputs": [{"id": 0, "dtype": "f32"}],
        "outputs": [{"id": 1, "dtype": "f32"}]}]})");
    EXPECT_EQ(g.ops().size(), 1u);
    if (g.ops().empty()) return op();
    EXPECT_EQ(g.ops()[0].name, "a \"[inf, nan]\" -inf");
    return g.ops()[0];
  };
  for (const auto& [low, high] : {std::pair{"-inf", " inf"}, {" -Infinity", "Infinity"}}) {
    const op clamp = reads(std::string(R"("min": {"type": "f32", "value":)") + low +
                               R"(}, "max": {"type": "f32", "value":)" + high + "\n}",
                           "Clamp");
    EXPECT_EQ(clamp.attr(Attr::min), AttrValue(-INFINITY));
    EXPECT_EQ(clamp.attr(Attr::max), AttrValue(INFINITY));
  }
  for (const char* nan : {"nan", "-nan", "NaN", "-NaN"}) {
    const op elu = reads(std::string(R"("alpha": {"type": "f32", "value": )") + nan + "}", "LeakyReLU");
    EXPECT_TRUE(std::isnan(std::get<float>(elu.attr(Attr::alpha)))) << nan;
  }
}

TEST(json_read, attributes_about_the_run_that_dumped_are_left_out) {
  const graph g = read(softmax_json_with(R"("axis": {)", R"("partition_id": {"type": "s64", "value": 3},
      "backend": {"type": "string", "value": "dnnl_backend"}, "axis": {)"));
  ASSERT_EQ(g.ops().size(), 1u);
  EXPECT_EQ(g.ops()[0].attrs().size(), 2u);
}

TEST(json_read, shapes_may_be_unknown_in_part_or_as_a_whole) {
  const logical_tensor whole = input_with(R"("shape": [-9223372036854775808], "stride": [-9223372036854775808],
      "layout_type": "strided")");
  EXPECT_EQ(whole, logical_tensor(0, Dtype::f32, Layout::strided));
  const logical_tensor part = input_with(R"("shape": [2, -9223372036854775808], "layout_type": "strided")");
  EXPECT_EQ(part, logical_tensor(0, Dtype::f32, {2, kUnknownDim}));
  const logical_tensor line = input_with(R"("shape": [-9223372036854775808], "rank": 1, "layout_type": "any")");
  EXPECT_EQ(line, logical_tensor(0, Dtype::f32, {kUnknownDim}, Layout::any));
}

TEST(json_read, an_undefined_layout_with_strides_is_strided) {
  EXPECT_EQ(input_with(R"("shape": [2, 3], "stride": [1, 2], "layout_type": "undef")"),
            logical_tensor(0, Dtype::f32, {2, 3}, Dims{1, 2}));
  EXPECT_EQ(input_with(R"("shape": [2, 3], "stride": [-9223372036854775808], "layout_type": "undef")"),
            logical_tensor(0, Dtype::f32, {2, 3}, Dims{kUnknownDim, kUnknownDim}));
  EXPECT_EQ(input_with(R"("shape": [2, 3], "layout_type": "undef")"),
            logical_tensor(0, Dtype::f32, {2, 3}, Layout::undef));
}

TEST(json_read, other_layouts_ignore_the_stride_list) {
  EXPECT_EQ(input_with(R"("shape": [2, 3], "stride": [0, 7, 7], "layout_type": "any")"),
            logical_tensor(0, Dtype::f32, {2, 3}, Layout::any));
  logical_tensor opaque(0, Dtype::f32, {2, 3}, Layout::opaque);
  opaque.layout_id = 17;
  EXPECT_EQ(input_with(R"("shape": [2, 3], "stride": [17], "layout_type": "opaque", "layout_id": 17)"), opaque);
}

TEST(json_read, missing_strides_are_dense) {
  EXPECT_EQ(input_with(R"("shape": [2, 3], "layout_type": "strided")"), logical_tensor(0, Dtype::f32, {2, 3}));
  EXPECT_EQ(input_with(R"("shape": [2, 3])"), logical_tensor(0, Dtype::f32, {2, 3}));
}

/// Two operators, the second reads what the first makes of a [2, 3]; the strides that both tell of the one between.
std::string two_operators(std::string_view made, std::string_view read) {
  const auto tensor = [](std::string_view id, std::string_view stride) {
    return str(R"({"id": )", id, R"(, "dtype": "f32", "shape": [2, 3], "stride": )", stride, "}");
  };
  return str(R"({"graph": [{"id": 2, "kind": "Abs", "inputs": [)", tensor("1", read), R"(], "outputs": [)",
             tensor("2", "[3, 1]"), R"(]}, {"id": 1, "kind": "ReLU", "inputs": [)", tensor("0", "[3, 1]"),
             R"(], "outputs": [)", tensor("1", made), "]}]}");
}

TEST(json_read, who_makes_a_tensor_tells_its_strides) {
  for (const std::string_view made : {"[3, 1]", "[1, 2]"}) {
    graph g = read(two_operators(made, "[6, 1]"));
    ASSERT_EQ(g.ops().size(), 2u);
    EXPECT_EQ(g.ops()[0].inputs[0].strides, g.ops()[1].outputs[0].strides);
    EXPECT_EQ(g.ops()[0].inputs[0].strides, made == "[3, 1]" ? Dims({3, 1}) : Dims({1, 2}));
    EXPECT_TRUE(g.finalize().ok());
  }
}

TEST(json_read, inputs_of_the_graph_have_one_layout) {
  std::string text = two_operators("[3, 1]", "[6, 1]");
  text.replace(text.find(R"("id": 0)"), 7, R"("id": 1)");  // both operators read the tensor
  text.replace(text.rfind(R"("id": 1)"), 7, R"("id": 3)");
  graph g = read(text);
  EXPECT_EQ(g.finalize().text(), "op 1 (ReLU): tensor 1 has different strides here ([3,1]) than in op 2 (Abs) ([6,1])");
}

TEST(json_read, escapes_in_names_are_understood) {
  const graph g = read(softmax_json_with(R"("sm")", R"("a\"b\\\n\u00e4")"));
  ASSERT_EQ(g.ops().size(), 1u);
  EXPECT_EQ(g.ops()[0].name, "a\"b\\\n\xc3\xa4");
}

TEST(json_read, a_byte_order_mark_is_skipped) {
  EXPECT_EQ(read("\xef\xbb\xbf" + std::string(kSoftmaxJson)).ops().size(), 1u);
}

}  // namespace
}  // namespace partita
