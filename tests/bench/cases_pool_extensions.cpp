// SPDX-License-Identifier: Apache-2.0
// Poolings that oneDNN does not have: maxima with indices and gradients from them, rounding up, adaptive windows.
#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

constexpr const char* kGroup = "pooling extensions";

const Dims kStem{32, 64, 112, 112}, kVgg{16, 64, 224, 224}, kAudio{256, 32, 4000}, kC3d{8, 128, 16, 56, 56};
constexpr Window kStemWindow{.kernel = 3, .stride = 2, .pad = 1};
constexpr Window kHalf = {};
constexpr Window k1d{.axes = 1, .kernel = 4, .stride = 4};
constexpr Window k3d{.axes = 3, .kernel = 2, .stride = 2};

/// Input 2, the number of each window's first maximum in its plane of input 0.
void find_indices(const Net& net, std::span<const Memory> inputs, const Window& window) {
  const Shape &src = net.shape(net.inputs()[0].value), &indices = net.shape(net.inputs()[2].value);
  const int axes = window.axes;
  Dims taps(axes, window.kernel), cells, windows;
  for (int i = 0; i < axes; ++i) {
    cells.push_back(src.dims[2 + i]);
    windows.push_back(indices.dims[2 + i]);
  }
  const Dims from = src.strides(), to = indices.strides();
  auto* result = static_cast<int64_t*>(inputs[2].data());
#pragma omp parallel for schedule(static)
  for (int64_t plane = 0; plane < src.dims[0] * src.dims[1]; ++plane) {
    const int64_t n = plane / src.dims[1], c = plane % src.dims[1];
    for (int64_t o = 0; o < elements(windows); ++o) {
      const Dims place = coordinates(o, windows);
      double best = -std::numeric_limits<double>::infinity();
      int64_t winner = -1, position = n * to[0] + c * to[1];
      for (int i = 0; i < axes; ++i) position += place[i] * to[2 + i];
      for (int64_t t = 0; t < elements(taps); ++t) {
        const Dims tap = coordinates(t, taps);
        int64_t cell = 0, at = n * from[0] + c * from[1];
        bool inside = true;
        for (int i = 0; i < axes; ++i) {
          const int64_t x = place[i] * window.stride - window.pad + tap[i];
          inside = inside && x >= 0 && x < cells[i];
          cell = cell * cells[i] + x;
          at += x * from[2 + i];
        }
        if (!inside) continue;
        const double value = load_as_double(inputs[0].data(), src.dtype, at);
        if (value <= best) continue;
        best = value;
        winner = cell;
      }
      result[position] = winner;
    }
  }
}

/// oneDNN finds the same maxima in the source, which Partita does not read.
Case from_indices(const char* name, const Dims& wide, const Window& window, bool relu) {
  const Dims narrow = window.pooled(wide);
  return {.group = kGroup,
          .name = name,
          .orders = kBothOrders,
          .graph =
              [=](Net& n) {
                const Value src = n.input(wide), diff_dst = n.input(narrow);
                const Value indices = n.input(narrow, {{}, Dtype::s64});
                const Value diff_src = n.op(OpKind::MaxPoolIndicesBackward, {diff_dst, indices}, wide);
                n.output(relu ? n.op(OpKind::ReLUBackward, {src, diff_src}, wide) : diff_src);
              },
          .chain =
              [=](Chain& c) {
                c.max_pool_backward(c.in(0), c.in(1), window, c.out(0));
                if (relu) c.relu_backward(c.in(0), c.out(0), c.out(0));
              },
          .never_read = relu ? std::vector<int>{} : std::vector<int>{0},
          .dtypes = {Dtype::f32, Dtype::bf16},
          .derive = [=](const Net& net, std::span<const Memory> inputs) { find_indices(net, inputs, window); }};
}

Case with_indices(const char* name, const Dims& wide, const Window& window) {
  const Dims narrow = window.pooled(wide);
  return {.group = kGroup,
          .name = name,
          .orders = kBothOrders,
          .graph =
              [=](Net& n) {
                Shape indices = n.like(narrow);
                indices.dtype = Dtype::s64;
                const auto results =
                    n.ops(OpKind::MaxPool, {n.input(wide)}, {n.like(narrow), indices}, pool_attributes(window, false));
                n.output(results[0]);
                n.output(results[1]);
              },
          .chain = [=](Chain& c) { c.pool(dnnl::algorithm::pooling_max, c.in(0), window, c.out(0)); },
          .dtypes = {Dtype::f32, Dtype::bf16},
          .unchecked = {1}};
}

/// Average pooling whose last windows overhang, with the padded box as divisor.
Case rounded_up(const char* name, OpKind kind, const Dims& wide, const Dims& narrow) {
  const bool forward = kind == OpKind::AvgPool;
  return {.group = kGroup,
          .name = name,
          .orders = kBothOrders,
          .graph =
              [=](Net& n) {
                Attributes attributes = pool_attributes({.kernel = 3, .stride = 2, .counts_padding = true}, true);
                attributes.emplace_back(Attr::rounding_type, std::string("ceil_inside"));
                attributes.emplace_back(Attr::exclude_overhang, true);
                n.output(n.op(kind, {n.input(forward ? wide : narrow)}, forward ? narrow : wide, attributes));
              },
          .chain = nullptr,
          .dtypes = {Dtype::f32, Dtype::bf16}};
}

Case adaptive(const char* name, OpKind kind, const Dims& wide, const Dims& narrow) {
  const bool forward = kind == OpKind::AdaptiveAvgPool;
  return {.group = kGroup,
          .name = name,
          .orders = kBothOrders,
          .graph =
              [=](Net& n) {
                Attributes attributes;
                if (forward) attributes.emplace_back(Attr::sizes, std::vector<int64_t>{narrow[2], narrow[3]});
                n.output(n.op(kind, {n.input(forward ? wide : narrow)}, forward ? narrow : wide, attributes));
              },
          .chain = nullptr,
          .dtypes = {Dtype::f32, Dtype::bf16}};
}

}  // namespace

std::vector<Case> pool_extension_cases() {
  return {
      from_indices("max 3x3 s2 p1 from indices (ResNet-50 stem)", kStem, kStemWindow, false),
      from_indices("max 2x2 from indices (VGG-16)", kVgg, kHalf, false),
      from_indices("max 1D k4 from indices (M5 audio)", kAudio, k1d, false),
      from_indices("max 2x2x2 from indices (C3D)", kC3d, k3d, false),
      from_indices("max 3x3 s2 p1 from indices > ReLU", kStem, kStemWindow, true),
      with_indices("max 3x3 s2 p1 with indices (ResNet-50 stem)", kStem, kStemWindow),
      with_indices("max 2x2 with indices (VGG-16)", kVgg, kHalf),
      rounded_up("avg 3x3 s2 forward, rounded up", OpKind::AvgPool, kStem, {32, 64, 56, 56}),
      rounded_up("avg 3x3 s2 backward, rounded up", OpKind::AvgPoolBackward, kStem, {32, 64, 56, 56}),
      adaptive("adaptive avg 57x57 > 7x7 forward", OpKind::AdaptiveAvgPool, {32, 256, 57, 57}, {32, 256, 7, 7}),
      adaptive("adaptive avg 57x57 > 7x7 backward", OpKind::AdaptiveAvgPoolBackward, {32, 256, 57, 57},
               {32, 256, 7, 7}),
      adaptive("adaptive avg 56x56 > 32x32 backward", OpKind::AdaptiveAvgPoolBackward, {32, 256, 56, 56},
               {32, 256, 32, 32}),
  };
}

}  // namespace partita::bench
