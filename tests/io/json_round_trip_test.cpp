// SPDX-License-Identifier: Apache-2.0
// Writing and reading again gives the same graph: random ones, and every graph file there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "partita/json.hpp"
#include "src/base/text.hpp"
#include "tests/io/softmax_json.hpp"
#include "tests/support/random.hpp"

#ifndef PARTITA_SOURCE_DIR
#define PARTITA_SOURCE_DIR "."
#endif

namespace partita {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  graph make() {
    graph g(pick(2) ? EngineKind::cpu : EngineKind::any);
    EXPECT_TRUE(g.set_fpmath_mode(static_cast<FpMath>(pick(5)), pick(2) == 1).ok());
    const int ops = pick(6);
    for (int i = 0; i < ops; ++i) {
      const Status added = g.add_op(pick(2) ? wildcard() : known());
      EXPECT_TRUE(added.ok()) << added.text();
    }
    return g;
  }

 private:
  int pick(int n) { return static_cast<int>(random_.whole(0, n - 1)); }
  uint32_t bits() { return static_cast<uint32_t>(random_.whole(0, UINT32_MAX)); }
  /// Now and then beyond int64.
  uint64_t id() { return pick(8) ? static_cast<uint64_t>(pick(20)) : ~uint64_t{0} - static_cast<uint64_t>(pick(9)); }

  std::string name() {
    static const std::string kParts[] = {"conv", "\"", "\\", "\n", "\t", "\x01", "\xc3\xa4", "/", "{", ""};
    std::string out;
    for (int n = pick(5); n > 0; --n) out += kParts[pick(10)];
    return out;
  }

  logical_tensor tensor() {
    logical_tensor t(id(), static_cast<Dtype>(pick(13)), static_cast<Layout>(pick(4)));
    t.property = static_cast<Property>(pick(4));
    if (t.layout == Layout::opaque) t.layout_id = static_cast<uint64_t>(bits()) << 32 | bits();
    if (pick(6) == 0 && t.property != Property::host_scalar) return t;
    t.rank_known = true;
    if (t.property == Property::host_scalar) {
      t.dtype = Dtype::f32;
      return t;
    }
    const int rank = pick(5);
    for (int i = 0; i < rank; ++i) t.dims.push_back(pick(7) ? pick(6) : kUnknownDim);
    if (t.layout != Layout::strided) return t;
    const int style = pick(3);
    if (style == 0) t.strides = Dims(rank, kUnknownDim);
    if (style == 1) t.strides = dense_strides(t.dims);
    if (style == 2) {
      for (int i = 0; i < rank; ++i) t.strides.push_back(pick(7) ? pick(50) : kUnknownDim);
    }
    return t;
  }

  op wildcard() {
    op o(next_op_++, OpKind::Wildcard, name());
    for (int n = pick(4); n > 0; --n) o.add_input(tensor());
    for (int n = pick(4); n > 0; --n) o.add_output(tensor());
    return o;
  }

  float any_float() {
    const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, 1e-45f, 3.4028235e38f, 1e-5f, 0.1f};
    if (pick(4) == 0) return special[pick(8)];
    const float f = std::bit_cast<float>(bits());
    return std::isnan(f) ? 1.5f : f;  // NaN is not equal to itself
  }

  op known() {
    const logical_tensor in(id(), Dtype::f32), out(id(), Dtype::f32);
    op o(next_op_++, OpKind::Clamp, {in}, {out}, name());
    switch (pick(4)) {
      case 0: {
        const float a = any_float(), b = any_float();
        o.set_attr(Attr::min, std::min(a, b)).set_attr(Attr::max, std::max(a, b));
        break;
      }
      case 1:
        o.kind = OpKind::SoftMax;
        o.set_attr(Attr::axis, int64_t{pick(9) - 4})
            .set_attr(Attr::mode, std::string(pick(2) ? "none" : "inf_as_zero"));
        break;
      case 2:
        o.kind = OpKind::ReduceMax;
        o.set_attr(Attr::axes, std::vector<int64_t>{pick(4)}).set_attr(Attr::keep_dims, pick(2) == 1);
        break;
      default: {
        o.kind = OpKind::Quantize;
        o.outputs[0].dtype = Dtype::s8;
        o.set_attr(Attr::qtype, std::string("per_channel"));
        std::vector<float> scales;
        std::vector<int64_t> zps;
        for (int n = 1 + pick(5); n > 0; --n)
          scales.push_back(std::fabs(any_float()) + 1e-3f), zps.push_back(pick(9) - 4);
        for (float& s : scales) s = std::isfinite(s) ? s : 2.0f;
        o.set_attr(Attr::scales, scales).set_attr(Attr::zps, zps);
      }
    }
    return o;
  }

  test::Random random_;
  uint64_t next_op_ = 0;
};

void expect_same_after_round_trip(const graph& g) {
  const std::string text = graph_to_json(g);
  const Result<graph> again = graph_from_json(text);
  ASSERT_TRUE(again.ok()) << again.status().text() << "\n" << text;
  EXPECT_EQ(again->ops(), g.ops()) << text;
  EXPECT_EQ(again->engine_kind(), g.engine_kind());
  EXPECT_EQ(again->fpmath_mode(), g.fpmath_mode());
  EXPECT_EQ(again->fpmath_apply_to_int(), g.fpmath_apply_to_int());
  EXPECT_EQ(graph_to_json(*again), text);
}

TEST(json_round_trip, random_graphs_come_back_equal) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_same_after_round_trip(RandomGraph(seed).make());
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<std::string> graph_files() {
  std::vector<std::string> files;
  const char* more = std::getenv("PARTITA_CORPUS");
  for (const std::string& folder : {std::string(PARTITA_SOURCE_DIR) + "/tests/data", std::string(more ? more : "")}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(json_round_trip, every_graph_file_that_loads_comes_back_equal) {
  const std::vector<std::string> files = graph_files();
  size_t loaded = 0;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Result<graph> g = graph_from_json_file(file);
    if (!g.ok()) {
      EXPECT_TRUE(g.status().text().starts_with(file + ":")) << g.status().text();
      continue;
    }
    ++loaded;
    expect_same_after_round_trip(*g);
  }
  if (files.empty()) GTEST_SKIP() << "no graph files; PARTITA_CORPUS may name a folder of them";
  EXPECT_GE(loaded * 10, files.size() * 9);
}

TEST(json_round_trip, the_text_is_laid_out_one_element_a_line) {
  graph g;
  op o(3, OpKind::LeakyReLU, "a");
  o.set_attr(Attr::alpha, 0.1f);
  o.add_input(logical_tensor(1, Dtype::f32, {2})).add_output(logical_tensor(2, Dtype::f32, {}));
  o.outputs[0] = logical_tensor(2, Dtype::f32);
  ASSERT_TRUE(g.add_op(o).ok());
  EXPECT_EQ(graph_to_json(g), R"({
  "version": "3.7.2",
  "engine_kind": "cpu",
  "fpmath_mode": "strict",
  "fpmath_mode_apply_to_int": "false",
  "input_ports": [
    1
  ],
  "output_ports": [
    2
  ],
  "graph": [
    {
      "id": 3,
      "name": "a",
      "kind": "LeakyReLU",
      "attrs": {
        "alpha": {
          "type": "f32",
          "value": 0.1
        }
      },
      "inputs": [
        {
          "id": 1,
          "dtype": "f32",
          "shape": [
            2
          ],
          "stride": [
            1
          ],
          "layout_type": "strided",
          "property_type": "undef"
        }
      ],
      "outputs": [
        {
          "id": 2,
          "dtype": "f32",
          "shape": [
            -9223372036854775808
          ],
          "layout_type": "undef",
          "property_type": "undef"
        }
      ]
    }
  ]
}
)");
}

TEST(json_round_trip, attributes_are_sorted_by_name_and_empty_lists_are_short) {
  graph g;
  op o(3, OpKind::ReduceSum);
  o.set_attr(Attr::keep_dims, true).set_attr(Attr::axes, std::vector<int64_t>{1});
  o.add_input(logical_tensor(1, Dtype::f32)).add_output(logical_tensor(2, Dtype::f32));
  ASSERT_TRUE(g.add_op(o).ok());
  const std::string text = graph_to_json(g);
  EXPECT_LT(text.find("\"axes\""), text.find("\"keep_dims\""));
  const std::string nothing = graph_to_json(graph());
  EXPECT_NE(nothing.find("\"input_ports\": [],\n"), nothing.npos);
  EXPECT_NE(nothing.find("\"graph\": []\n}\n"), nothing.npos);
}

TEST(json_round_trip, ports_are_written_by_use_and_an_end_leaves_its_tensor_a_result) {
  graph g;
  const logical_tensor a(1, Dtype::f32), b(2, Dtype::f32), c(3, Dtype::f32);
  ASSERT_TRUE(g.add_op(op(0, OpKind::Add, {a, a}, {b})).ok());
  ASSERT_TRUE(g.add_op(op(1, OpKind::ReLU, {b}, {c})).ok());
  ASSERT_TRUE(g.add_op(op(2, OpKind::End, {c}, {})).ok());
  const std::string text = graph_to_json(g);
  EXPECT_NE(text.find("\"input_ports\": [\n    1,\n    1\n  ],\n  \"output_ports\": [\n    3\n  ],"), text.npos)
      << text;
}

TEST(json_round_trip, names_that_are_no_utf8_still_give_a_readable_file) {
  graph g;
  ASSERT_TRUE(
      g.add_op(op(0, OpKind::ReLU, {logical_tensor(1, Dtype::f32)}, {logical_tensor(2, Dtype::f32)}, "a\xff")).ok());
  const Result<graph> again = graph_from_json(graph_to_json(g));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again->ops()[0].name, "a\xef\xbf\xbd");
}

TEST(json_round_trip, a_nan_stays_one) {
  const Result<graph> g = graph_from_json(R"({"graph": [{"kind": "LeakyReLU", "id": 3, "attrs": {
      "alpha": {"type": "f32", "value": "nan"}}, "inputs": [{"id": 0, "dtype": "f32"}], "outputs": [{"id": 1, "dtype": "f32"}]}]})");
  ASSERT_TRUE(g.ok()) << g.status().text();
  const Result<graph> again = graph_from_json(graph_to_json(*g));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_TRUE(std::isnan(std::get<float>(again->ops()[0].attr(Attr::alpha))));
}

}  // namespace
}  // namespace partita
