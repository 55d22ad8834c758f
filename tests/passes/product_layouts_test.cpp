// SPDX-License-Identifier: Apache-2.0
// Products with something behind them, in layouts that primitives misread: axes of size 1, whose strides say nothing,
// batches that are not outermost, batch axes that are exchanged. Each is one partition whose result is what the
// references compute.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

/// `steps`, if any, is set to the steps.
void expect_reference(const std::string& text, uint64_t seed, const std::map<uint64_t, Dims>& strides = {},
                      std::string* steps = nullptr) {
  SCOPED_TRACE(str("seed ", seed, ": ", text));
  const CompiledGraph g = compiled_graph(text, 1 + static_cast<int>(seed % 2), seed, {}, strides);
  ASSERT_TRUE(g.executable);
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
  if (steps) *steps = g.steps();
}

/// Without gaps, the axes from the outermost one to the innermost in `order`.
Dims strides_in_order(const Dims& dims, const std::vector<int>& order) {
  Dims strides = dims;
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= dims[*axis];
  }
  return strides;
}

/// A convolution of small images, often of one channel or one pixel.
struct Images {
  bool channel_last;
  int64_t batch, groups, wide, narrow, kernel;
  std::vector<int64_t> cells, windows;
  std::string attributes;

  explicit Images(Random& random)
      : channel_last(random.coin()),
        batch(random.whole(1, 3)),
        groups(random.pick<int64_t>({1, 1, 2})),
        wide(groups * random.pick<int64_t>({1, 1, 3, 16})),
        narrow(groups * random.pick<int64_t>({1, 2, 16, 32})),
        kernel(random.pick<int64_t>({1, 1, 3})) {
    std::vector<int64_t> ones, zeros;
    for (int64_t axes = random.whole(1, 2); axes > 0; --axes) {
      cells.push_back(kernel + random.pick<int64_t>({0, 0, 3}));
      windows.push_back(cells.back() - kernel + 1);
      ones.push_back(1);
      zeros.push_back(0);
    }
    if (random.coin()) {
      cells.assign(cells.size(), kernel);
      windows.assign(cells.size(), 1);
    }
    attributes = str("{groups=", groups, ", strides=", list_of(ones), ", dilations=", list_of(ones),
                     ", pads_begin=", list_of(zeros), ", pads_end=", list_of(zeros),
                     ", data_format=", channel_last ? "NXC" : "NCX", ", weights_format=OIX}");
  }

  Dims src() const { return activation_dims(batch, wide, cells, channel_last); }
  Dims dst() const { return activation_dims(batch, narrow, windows, channel_last); }
  Dims weights() const {
    Dims dims{narrow, wide / groups};
    for (size_t axis = 0; axis < cells.size(); ++axis) dims.push_back(kernel);
    return dims;
  }
  /// Of one entry a channel, beside the result.
  Dims channels(int64_t rows) const {
    return activation_dims(rows, narrow, std::vector<int64_t>(windows.size(), 1), channel_last);
  }
};

/// With roundings to `inner` between integers and the product, and its result and what stands behind.
std::string of_integers(const Images& i, Random& random) {
  const bool rounds = random.coin();
  const std::string inner = rounds ? "bf16" : "f32", src = random.coin() ? "u8" : "s8";
  std::string text =
      str("%10: f32 = Dequantize(%0: ", src, list_of(i.src()), ") {scales=[0.1], zps=[", random.pick<int64_t>({0, 3}),
          "]};%11: f32 = Dequantize(%1: s8", list_of(i.weights()), ") {scales=[0.1], zps=[0]};");
  if (rounds) text += "%20: bf16 = TypeCast(%10);%21: bf16 = TypeCast(%11);";
  const std::string operands = rounds ? "%20, %21" : "%10, %11";
  const std::string bias = random.coin() ? str(", %2: ", inner, "[", i.narrow, "]") : "";
  text += str("%30: ", inner, " = Convolution(", operands, bias, ") ", i.attributes, ";");
  int last = 30;
  const auto add = [&](const std::string& operation) {
    text += str("%", last + 1, ": ", inner, " = ", operation, ";");
    ++last;
  };
  if (random.coin()) add(str("Multiply(%", last, ", %3: ", inner, list_of(i.channels(1)), ")"));
  if (random.coin()) add(str("ReLU(%", last, ")"));
  if (rounds) text += str("%39: f32 = TypeCast(%", last, ");");
  return text + (random.coin() ? str("%40: u8 = Quantize(%", rounds ? 39 : last, ") {scales=[0.2], zps=[5]}") : "");
}

TEST(product_layouts, integers_of_one_channel_and_one_pixel) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    const Images images(random);
    expect_reference(of_integers(images, random), seed);
    if (HasFailure()) return;
  }
}

/// They run as images of one line; what stands behind does, too.
TEST(product_layouts, rows_of_one_channel_a_group) {
  for (const char* format : {"NXC", "NCX"})
    for (const std::string dtype : {"f32", "bf16"}) {
      const bool last = std::string_view(format) == "NXC";
      const std::string src = last ? "[2,20,16]" : "[2,16,20]", dst = last ? "[2,18,16]" : "[2,16,18]";
      const std::string channel = last ? "[16]" : "[1,16,1]";
      const std::string text =
          str("%30: ", dtype, " = Convolution(%0: ", dtype, src, ", %1: ", dtype, "[16,1,3], %2: ", dtype,
              "[16]) {groups=16, strides=[1], dilations=[1], pads_begin=[0], pads_end=[0], data_format=", format,
              ", weights_format=OIX}; %31: ", dtype, " = Multiply(%30, %3: ", dtype, channel, "); %32: ", dtype,
              " = Add(%31, %4: ", dtype, dst, "); %33: ", dtype, " = ReLU(%32)");
      expect_reference(text, 3);
    }
}

TEST(product_layouts, results_whose_batch_is_not_outermost) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const Images i(random);
    const std::string dtype = random.pick<const char*>({"f32", "bf16", "f16"});
    const Dims operand = random.coin() ? i.channels(random.pick<int64_t>({1, i.batch})) : i.dst();
    std::vector<int> order(static_cast<size_t>(i.dst().size()));
    for (size_t axis = 0; axis < order.size(); ++axis) order[axis] = static_cast<int>(axis);
    for (size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[static_cast<size_t>(random.whole(0, static_cast<int64_t>(k) - 1))]);
    expect_reference(
        str("%30: ", dtype, " = Convolution(%0: ", dtype, list_of(i.src()), ", %1: ", dtype, list_of(i.weights()), ") ",
            i.attributes, "; %40: ", dtype, list_of(i.dst()), " = Add(%30, %3: ", dtype, list_of(operand), ")"),
        seed, {{40, strides_in_order(i.dst(), order)}});
    if (HasFailure()) return;
  }
}

TEST(product_layouts, matrices_whose_batch_axes_are_exchanged) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int64_t m = random.whole(1, 5), k = random.whole(1, 9), n = random.whole(1, 20);
    Dims batch;
    std::vector<int> order;
    for (int64_t axes = random.whole(2, 3); axes > 0; --axes) {
      order.insert(order.begin(), batch.size());
      batch.push_back(random.whole(1, 3));
    }
    order.push_back(batch.size());
    order.push_back(batch.size() + 1);
    const auto matrices = [&](int64_t rows, int64_t columns) {
      Dims dims = batch;
      dims.push_back(rows);
      dims.push_back(columns);
      return dims;
    };
    const Dims dst = matrices(m, n);
    Dims operand = dst;
    for (int axis = 0; axis < operand.size(); ++axis)
      if (random.coin()) operand[axis] = 1;
    const std::string dtype = random.pick<const char*>({"f32", "bf16", "f16"});
    expect_reference(
        str("%30: ", dtype, " = MatMul(%0: ", dtype, list_of(matrices(m, k)), ", %1: ", dtype, list_of(matrices(k, n)),
            "); %40: ", dtype, list_of(dst), " = Add(%30, %3: ", dtype, list_of(operand), ")"),
        seed, {{40, strides_in_order(dst, order)}});
    if (HasFailure()) return;
  }
}

/// Large enough for a factor to be brought into another order before: rows that are multiplied with many, columns where
/// tiles multiply, one or the other in a batch, and what lies beside a limit.
TEST(product_layouts, matrices_that_are_copied_before) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const bool a = random.coin(), b = random.coin(), batch = random.whole(0, 3) == 0;
    const char* dtype = random.coin() ? "f32" : "bf16";
    const int64_t rows = random.pick<int64_t>({257, 768, 768, 800}), sums = random.pick<int64_t>({255, 256, 260}),
                  columns = random.pick<int64_t>({255, 256, 272});
    const std::string stack = batch ? "2," : "";
    expect_reference(str("%2: ", dtype, "[", stack, rows, ",", columns, "] = MatMul(%0: ", dtype, "[", stack,
                         a ? sums : rows, ",", a ? rows : sums, "], %1: ", dtype, "[", b ? columns : sums, ",",
                         b ? sums : columns, "]) {transpose_a=", a ? "true" : "false", ", transpose_b=",
                         b ? "true" : "false", "}; %3: ", dtype, "[", stack, rows, ",", columns, "] = ReLU(%2)"),
                     seed);
    if (HasFailure()) return;
  }
}

/// Keys whose columns lie one after the other: what is made of them lies so, too, and nothing is transposed.
TEST(product_layouts, dequantized_matrices_lie_as_their_sources) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int64_t batch = random.whole(1, 3), heads = random.whole(1, 3), rows = random.whole(1, 5);
    const int64_t group = random.pick<int64_t>({2, 4, 8, 32}), groups = random.whole(1, 4),
                  columns = random.whole(2, 9);
    const Dims keys{batch, heads, groups * group, columns};
    const std::string scales = str("[1,", heads, ",", groups, ",", columns, "]");
    const char* type = random.pick<const char*>({"s4", "u4", "s8"});
    const std::string text =
        str("%10: f16", list_of(keys), " = DynamicDequantize(%0: ", type, list_of(keys), ", %1: f16", scales,
            ", %2: ", type, scales, ") {axis=2, qtype=per_group, group_shape=[", batch, ",1,", group, ",1]}; %11: f16[",
            batch, ",", heads, ",", rows, ",", columns, "] = MatMul(%3: f16[", batch, ",", heads, ",", rows, ",",
            groups * group, "], %10)");
    std::string steps;
    expect_reference(text, seed, {{0, strides_in_order(keys, {0, 1, 3, 2})}}, &steps);
    if (generates_code()) {
      EXPECT_EQ(steps.find("transpose"), std::string::npos) << text << "\n" << steps;
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace partita::test
