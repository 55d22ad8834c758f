// SPDX-License-Identifier: Apache-2.0
// Pooling forward, reductions, resizing and transposes.
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

using dnnl::algorithm;

const Dims kImages{32, 64, 112, 112};
const Dims kBlock{32, 256, 56, 56};
const Dims kTokens{64, 512, 1024};

Case pool_forward(const char* name, const Dims& wide, const Window& window, OpKind kind) {
  const bool average = kind == OpKind::AvgPool;
  return {"pooling forward", name, kBothOrders,
          [=](Net& n) { n.output(n.op(kind, {n.input(wide)}, window.pooled(wide), pool_attributes(window, average))); },
          [=](Chain& c) {
            if (average)
              c.average_pool(c.in(0), window, c.out(0));
            else
              c.pool(algorithm::pooling_max, c.in(0), window, c.out(0));
          }};
}

Case reduce_rows(const char* name, OpKind kind, algorithm how) {
  const Dims narrow{kTokens[0], kTokens[1], 1};
  return {"reductions", name, kNoOrder,
          [=](Net& n) {
            n.output(n.op(kind, {n.input(kTokens)}, narrow,
                          {{Attr::axes, std::vector<int64_t>{2}}, {Attr::keep_dims, true}}));
          },
          [=](Chain& c) { c.reduce(how, c.in(0), c.out(0)); }};
}

Case reduce_columns(const char* name, OpKind kind, algorithm how) {
  const Dims narrow{1, 1, kTokens[2]};
  return {"reductions", name, kNoOrder,
          [=](Net& n) {
            n.output(n.op(kind, {n.input(kTokens)}, narrow,
                          {{Attr::axes, std::vector<int64_t>{0, 1}}, {Attr::keep_dims, true}}));
          },
          [=](Chain& c) { c.reduce(how, c.in(0), c.out(0)); }};
}

/// Squeeze and excite backward: what the gate's gradient is.
Case gate_gradient() {
  return {"reductions", "Multiply > ReduceSum over the image (SE gate)", kBothOrders,
          [](Net& n) {
            const Value product = n.op(OpKind::Multiply, {n.input(kImages), n.input(kImages)}, kImages);
            n.output(n.op(OpKind::ReduceSum, {product}, one_cell(kImages),
                          {{Attr::axes, n.spatial_axes(kImages.size())}, {Attr::keep_dims, true}}));
          },
          [](Chain& c) {
            const Value product = c.temporary(kImages);
            c.multiply(c.in(0), c.in(1), product);
            c.reduce(algorithm::reduction_sum, product, c.out(0));
          }};
}

Case resize(const char* name, const Dims& from, const Dims& to, const char* mode, algorithm how) {
  return {"resizing", name, kBothOrders,
          [=](Net& n) {
            const auto factor = [&](int axis) { return static_cast<float>(to[axis]) / static_cast<float>(from[axis]); };
            n.output(n.op(OpKind::Interpolate, {n.input(from)}, to,
                          {{Attr::mode, std::string(mode)}, {Attr::scales, std::vector<float>{factor(2), factor(3)}}}));
          },
          [=](Chain& c) { c.resample(how, c.in(0), c.out(0)); }};
}

Case resize_backward(const char* name, const char* mode, algorithm how) {
  return {"resizing",
          name,
          kBothOrders,
          [=](Net& n) {
            const Value diff_dst = n.input(scaled(kBlock, 2)), src = n.input(kBlock);
            n.output(n.op(OpKind::InterpolateBackward, {src, diff_dst}, kBlock,
                          {{Attr::mode, std::string(mode)}, {Attr::scales, std::vector<float>{2, 2}}}));
          },
          [=](Chain& c) { c.resample_backward(how, c.in(0), c.out(0)); },
          /*read_twice=*/{},
          /*never_read=*/{1}};
}

/// `order` as StaticTranspose has it.
Case transpose(const char* name, const Dims& dims, const std::vector<int>& order) {
  Dims moved = dims;
  for (size_t i = 0; i < order.size(); ++i) moved[static_cast<int>(i)] = dims[order[i]];
  return {"transposes", name, kNoOrder,
          [=](Net& n) {
            n.output(n.op(OpKind::StaticTranspose, {n.input(dims)}, moved,
                          {{Attr::order, std::vector<int64_t>(order.begin(), order.end())}}));
          },
          [=](Chain& c) { c.reorder(c.permuted(c.in(0), order), c.out(0)); }};
}

}  // namespace

std::vector<Case> movement_cases() {
  constexpr Window kStem = {.kernel = 3, .stride = 2, .pad = 1}, kHalf = {};
  constexpr Window kSame = {.kernel = 3, .stride = 1, .pad = 1, .counts_padding = true};
  return {
      pool_forward("max 3x3 s2 p1 (ResNet-50 stem)", kImages, kStem, OpKind::MaxPool),
      pool_forward("max 2x2 (VGG-16)", {16, 64, 224, 224}, kHalf, OpKind::MaxPool),
      pool_forward("avg 2x2 (DenseNet-121 transition)", kBlock, kHalf, OpKind::AvgPool),
      pool_forward("avg 3x3 s1 p1 (Inception-v3)", {32, 288, 35, 35}, kSame, OpKind::AvgPool),
      pool_forward("avg 7x7 global (ResNet-18 head)", {512, 512, 7, 7}, {.kernel = 7, .stride = 1}, OpKind::AvgPool),
      pool_forward("avg 2x2 (GoogLeNet, 14x14)", {128, 512, 14, 14}, kHalf, OpKind::AvgPool),
      pool_forward("max 3x3 s2 p1 (GoogLeNet, 14x14)", {128, 512, 14, 14}, {.kernel = 3, .stride = 2, .pad = 1},
                   OpKind::MaxPool),
      pool_forward("max 2x2 (LeNet-5)", {4096, 6, 28, 28}, kHalf, OpKind::MaxPool),
      reduce_rows("ReduceSum, last axis", OpKind::ReduceSum, algorithm::reduction_sum),
      reduce_rows("ReduceMax, last axis", OpKind::ReduceMax, algorithm::reduction_max),
      reduce_columns("ReduceSum, first axes (bias gradient)", OpKind::ReduceSum, algorithm::reduction_sum),
      gate_gradient(),
      resize("nearest 2x", kBlock, scaled(kBlock, 2), "nearest", algorithm::resampling_nearest),
      resize("bilinear 2x", kBlock, scaled(kBlock, 2), "bilinear", algorithm::resampling_linear),
      resize("bilinear 2x, 7x7 > 14x14", {256, 512, 7, 7}, {256, 512, 14, 14}, "bilinear",
             algorithm::resampling_linear),
      resize("bilinear 256x256 > 224x224 (RGB images)", {64, 3, 256, 256}, {64, 3, 224, 224}, "bilinear",
             algorithm::resampling_linear),
      resize_backward("nearest 2x backward", "nearest", algorithm::resampling_nearest),
      resize_backward("bilinear 2x backward", "bilinear", algorithm::resampling_linear),
      transpose("NCHW to NHWC", kImages, {0, 2, 3, 1}),
      transpose("NHWC to NCHW", {32, 112, 112, 64}, {0, 3, 1, 2}),
      transpose("heads to tokens (BERT)", {32, 12, 512, 64}, {0, 2, 1, 3}),
      transpose("boxes of anchors (detection head)", {32, 6, 16384, 4}, {0, 2, 1, 3}),
  };
}

}  // namespace partita::bench
