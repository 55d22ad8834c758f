// SPDX-License-Identifier: Apache-2.0
// Pooling backward, alone and in the chains that training graphs have around it.
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

using dnnl::algorithm;

/// A pooling of a model: the wide tensor's shape and the window.
struct Pool {
  Dims wide;
  Window window;
  Dims narrow() const { return window.pooled(wide); }
};

constexpr Window k1d(int64_t kernel) { return {.axes = 1, .kernel = kernel, .stride = kernel}; }
constexpr Window k3d(int64_t kernel) { return {.axes = 3, .kernel = kernel, .stride = kernel}; }
constexpr Window kHalf = {};
constexpr Window kStem = {.kernel = 3, .stride = 2, .pad = 1};
constexpr Window kSame = {.kernel = 3, .stride = 1, .pad = 1, .counts_padding = true};
constexpr Window k7x7 = {.kernel = 7, .stride = 1};

const Pool kResnetStem{{32, 64, 112, 112}, kStem};
const Pool kResnetHead{{128, 2048, 7, 7}, k7x7};
const Pool kVgg{{16, 64, 224, 224}, kHalf};
const Pool kDenseNet{{32, 256, 56, 56}, kHalf};
const Pool kInception{{32, 288, 35, 35}, kSame};
const Pool kInceptionAux{{64, 768, 17, 17}, {.kernel = 5, .stride = 3}};
const Pool kGoogLeNet{{128, 832, 14, 14}, kStem};
const Pool kAlexNet{{256, 256, 13, 13}, {.kernel = 3, .stride = 2}};
const Pool kUnet{{4, 64, 512, 512}, kHalf};
const Pool kAudio{{256, 32, 4000}, k1d(4)};
const Pool kC3d{{8, 128, 16, 56, 56}, k3d(2)};
const Pool kPointNet{{32, 1024, 1024}, k1d(1024)};
const Pool kLeNet{{256, 6, 28, 28}, kHalf};

Value average(Net& n, const Pool& p, Value diff_dst, Dtype dtype = Dtype::undef) {
  return n.op(OpKind::AvgPoolBackward, {diff_dst}, p.wide, pool_attributes(p.window, true), dtype);
}

/// `ports`: src and diff_dst, in braces, which fix the order in which inputs are made.
Value max(Net& n, const Pool& p, std::vector<Value> ports) {
  return n.op(OpKind::MaxPoolBackward, std::move(ports), p.wide, pool_attributes(p.window, false));
}

constexpr float kEpsilon = 1e-5f;

constexpr const char* kAlone = "pooling backward";
constexpr const char* kChains = "pooling backward chains";

Case average_alone(const char* name, const Pool& p) {
  return {kAlone, name, kBothOrders, [p](Net& n) { n.output(average(n, p, n.input(p.narrow()))); },
          [p](Chain& c) { c.average_pool_backward(c.in(0), p.window, c.out(0)); }};
}

Case max_alone(const char* name, const Pool& p) {
  return {kAlone, name, kBothOrders,
          [p](Net& n) {
            n.output(max(n, p, {n.input(p.wide), n.input(p.narrow())}));
          },
          [p](Chain& c) { c.max_pool_backward(c.in(0), c.in(1), p.window, c.out(0)); }};
}

/// Of the equal maxima that so many narrow numbers have, oneDNN's channel-last kernel does not take the first.
Case max_over_points(const char* name, const Pool& p) {
  Case made = max_alone(name, p);
  made.dtypes = {Dtype::f32};
  return made;
}

Case max_relu(const char* name, const Pool& p) {
  return {kChains, name, kBothOrders,
          [p](Net& n) {
            const Value pooled = max(n, p, {n.input(p.wide), n.input(p.narrow())});
            n.output(n.op(OpKind::ReLUBackward, {n.input(p.wide), pooled}, p.wide));
          },
          [p](Chain& c) {
            c.max_pool_backward(c.in(0), c.in(1), p.window, c.out(0));
            c.relu_backward(c.in(2), c.out(0), c.out(0));
          }};
}

/// The pooled activation is the ReLU's result: one tensor serves both.
Case max_relu_shared(const char* name, const Pool& p) {
  return {kChains, name, kBothOrders,
          [p](Net& n) {
            const Value activation = n.input(p.wide);
            const Value pooled = max(n, p, {activation, n.input(p.narrow())});
            n.output(n.op(OpKind::ReLUBackward, {activation, pooled}, p.wide));
          },
          [p](Chain& c) {
            c.max_pool_backward(c.in(0), c.in(1), p.window, c.out(0));
            c.relu_backward(c.in(0), c.out(0), c.out(0));
          }};
}

Case max_add_relu(const char* name, const Pool& p) {
  return {kChains, name, kBothOrders,
          [p](Net& n) {
            const Value activation = n.input(p.wide);
            const Value pooled = max(n, p, {activation, n.input(p.narrow())});
            const Value merged = n.op(OpKind::Add, {pooled, n.input(p.wide)}, p.wide);
            n.output(n.op(OpKind::ReLUBackward, {activation, merged}, p.wide));
          },
          [p](Chain& c) {
            c.max_pool_backward(c.in(0), c.in(1), p.window, c.out(0));
            c.add(c.out(0), c.in(2), c.out(0));
            c.relu_backward(c.in(0), c.out(0), c.out(0));
          }};
}

Case average_adds(const char* name, const Pool& p, int adds) {
  return {kChains, name, kBothOrders,
          [p, adds](Net& n) {
            Value sum = average(n, p, n.input(p.narrow()));
            for (int i = 0; i < adds; ++i) sum = n.op(OpKind::Add, {sum, n.input(p.wide)}, p.wide);
            n.output(sum);
          },
          [p, adds](Chain& c) {
            c.average_pool_backward(c.in(0), p.window, c.out(0));
            for (int i = 0; i < adds; ++i) c.add(c.out(0), c.in(i + 1), c.out(0));
          }};
}

Case average_activation(const char* name, const Pool& p, OpKind kind, algorithm from_dst) {
  return {kChains, name, kBothOrders,
          [p, kind](Net& n) {
            const Value pooled = average(n, p, n.input(p.narrow()));
            n.output(n.op(kind, {n.input(p.wide), pooled}, p.wide));
          },
          [p, from_dst](Chain& c) {
            c.average_pool_backward(c.in(0), p.window, c.out(0));
            c.eltwise_backward_from_dst(from_dst, c.in(1), c.out(0), c.out(0));
          }};
}

/// Squeeze and excite: the gradient through the gate, and the one through the gate's global average.
Case squeeze_excite(const char* name, const Dims& wide) {
  const Pool p{wide, {.axes = 2, .kernel = wide[2], .stride = 1}};
  return {kChains, name, kBothOrders,
          [p](Net& n) {
            const Value gated = n.op(OpKind::Multiply, {n.input(p.wide), n.input(p.narrow())}, p.wide);
            n.output(n.op(OpKind::Add, {gated, average(n, p, n.input(p.narrow()))}, p.wide));
          },
          [p](Chain& c) {
            const Value spread = c.temporary(p.wide);
            c.multiply(c.in(0), c.in(1), c.out(0));
            c.average_pool_backward(c.in(2), p.window, spread);
            c.add(c.out(0), spread, c.out(0));
          }};
}

/// The pooled activation is a ReLU's result, and the ReLU's source came from a batch normalisation.
Case pool_relu_norm(const char* name, const Pool& p, bool maximum) {
  return {
      kChains,
      name,
      kBothOrders,
      [p, maximum](Net& n) {
        const int64_t channels = p.wide[1];
        const Value activation = n.input(p.wide), diff_dst = n.input(p.narrow());
        const Value pooled = maximum ? max(n, p, {activation, diff_dst}) : average(n, p, diff_dst);
        const Value relu = n.op(OpKind::ReLUBackward, {activation, pooled}, p.wide);
        const Value src = n.input(p.wide), mean = n.vector(channels, {-0.1f, 0.1f});
        const Value variance = n.vector(channels, {0.3f, 0.4f}), scale = n.vector(channels);
        const Shape vector = Net::floats({channels});
        const auto results = n.ops(OpKind::BatchNormTrainingBackward, {src, relu, mean, variance, scale},
                                   {n.like(p.wide), vector, vector}, {{Attr::epsilon, kEpsilon}});
        for (Value result : results) n.output(result);
      },
      [p, maximum](Chain& c) {
        const Value diff_dst = c.temporary(p.wide);
        if (maximum)
          c.max_pool_backward(c.in(0), c.in(1), p.window, diff_dst);
        else
          c.average_pool_backward(c.in(1), p.window, diff_dst);
        c.relu_backward(c.in(0), diff_dst, diff_dst);
        c.batch_norm_backward(c.in(2), diff_dst, {c.in(3), c.in(4)}, c.in(5), c.out(0), {c.out(1), c.out(2)}, kEpsilon);
      },
      /*read_twice=*/{0, 1, 2}};
}

/// The ReLU's source is a convolution's result with a bias, whose gradient is the sum of what goes on.
Case max_relu_bias(const char* name, const Pool& p) {
  return {kChains, name, kBothOrders,
          [p](Net& n) {
            const Value activation = n.input(p.wide);
            const Value pooled = max(n, p, {activation, n.input(p.narrow())});
            const Value relu = n.op(OpKind::ReLUBackward, {activation, pooled}, p.wide);
            n.output(relu);
            n.output(n.op(OpKind::BiasAddBackward, {relu}, {p.wide[1]}));
          },
          [p](Chain& c) {
            c.max_pool_backward(c.in(0), c.in(1), p.window, c.out(0));
            c.relu_backward(c.in(0), c.out(0), c.out(0));
            dnnl::memory::dims channels(static_cast<size_t>(p.wide.size()), 1);
            channels[1] = p.wide[1];
            c.reduce(algorithm::reduction_sum, c.out(0), c.reshaped(c.out(1), channels));
          }};
}

/// Mixed precision: 16-bit gradients outside, the pooling and the sum of two branches in f32.
Case mixed_precision(const char* name, const Pool& p) {
  return {kChains,
          name,
          kBothOrders,
          [p](Net& n) {
            const Dtype outside = n.dtype(), inside = Dtype::f32;
            const Value wide = n.op(OpKind::TypeCast, {n.input(p.narrow())}, p.narrow(), {}, inside);
            const Value pooled = average(n, p, wide, inside);
            const Value sum = n.op(OpKind::Add, {pooled, n.input(p.wide, {{}, inside})}, p.wide, {}, inside);
            n.output(n.op(OpKind::TypeCast, {sum}, p.wide, {}, outside));
          },
          [p](Chain& c) {
            const Value narrow = c.temporary(p.narrow(), Dtype::f32), sum = c.temporary(p.wide, Dtype::f32);
            c.reorder(c.in(0), narrow);
            c.average_pool_backward(narrow, p.window, sum);
            c.add(sum, c.in(1), sum);
            c.reorder(sum, c.out(0));
          },
          /*read_twice=*/{},
          /*never_read=*/{},
          {Dtype::bf16, Dtype::f16}};
}

}  // namespace

std::vector<Case> pool_backward_cases() {
  return {
      max_alone("ResNet-50 stem, max 3x3 s2 p1", kResnetStem),
      max_alone("VGG-16, max 2x2", kVgg),
      max_alone("GoogLeNet, max 3x3 s2 p1, 14x14", kGoogLeNet),
      max_alone("AlexNet, max 3x3 s2, 13x13", kAlexNet),
      max_alone("U-Net, max 2x2, 512x512", kUnet),
      max_alone("M5 audio, max 1D k4", kAudio),
      max_alone("C3D, max 2x2x2", kC3d),
      max_alone("max 7x7 global", kResnetHead),
      max_over_points("PointNet, max 1D k1024 global", kPointNet),
      average_alone("DenseNet-121 transition, avg 2x2", kDenseNet),
      average_alone("Inception-v3, avg 3x3 s1 p1", kInception),
      average_alone("Inception-v3 auxiliary head, avg 5x5 s3, 17x17", kInceptionAux),
      average_alone("ResNet-50 head, avg 7x7 global", kResnetHead),
      average_alone("avg 2x2, 64x224x224", kVgg),
      average_alone("avg 3x3 s2 p1, 64x112x112", kResnetStem),
      average_alone("avg 3x3 s2, 13x13", kAlexNet),
  };
}

std::vector<Case> pool_chain_cases() {
  return {
      max_relu("max 3x3 s2 p1 > ReLU (ResNet-50 stem)", kResnetStem),
      max_relu_shared("max 2x2 > ReLU, one activation (VGG-16)", kVgg),
      max_relu("max 1D k4 > ReLU (M5 audio)", kAudio),
      max_relu_shared("max 2x2x2 > ReLU, one activation (C3D)", kC3d),
      max_add_relu("max 2x2 > Add > ReLU (U-Net skip)", kUnet),
      average_adds("avg 3x3 s1 > Add x3 (Inception merge)", kInception, 3),
      average_activation("avg 2x2 > ReLU (DenseNet-121)", kDenseNet, OpKind::ReLUBackward,
                         algorithm::eltwise_relu_use_dst_for_bwd),
      average_activation("avg 7x7 global > ReLU (ResNet-50)", kResnetHead, OpKind::ReLUBackward,
                         algorithm::eltwise_relu_use_dst_for_bwd),
      average_activation("avg 2x2 > Tanh (LeNet-5)", kLeNet, OpKind::TanhBackward,
                         algorithm::eltwise_tanh_use_dst_for_bwd),
      pool_relu_norm("max 3x3 s2 p1 > ReLU > batch norm (ResNet-50 stem)", kResnetStem, /*maximum=*/true),
      pool_relu_norm("max 1D k4 > ReLU > batch norm (M5 audio)", kAudio, /*maximum=*/true),
      pool_relu_norm("avg 2x2 > ReLU > batch norm", kDenseNet, /*maximum=*/false),
      pool_relu_norm("avg 3x3 s1 > ReLU > batch norm", kInception, /*maximum=*/false),
      max_relu_bias("max 2x2 > ReLU > bias (VGG-16)", kVgg),
      max_relu_bias("max 2x2x2 > ReLU > bias (C3D)", kC3d),
      squeeze_excite("Multiply, avg global > Add (MobileNet SE)", {32, 96, 112, 112}),
      mixed_precision("cast > avg 2x2 > Add > cast", kDenseNet),
  };
}

}  // namespace partita::bench
