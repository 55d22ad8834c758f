// SPDX-License-Identifier: Apache-2.0
// Softmax, layer normalisation and batch normalisation, forward and backward.
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

using dnnl::algorithm;

constexpr float kEpsilon = 1e-5f;
constexpr float kMomentum = 0.9f;
const Dims kAttention{8, 16, 512, 512};  // batch, heads, queries, keys
const Dims kVocabulary{1024, 32000};
const Dims kTokens{64, 512, 1024};
const Dims kImages{32, 64, 112, 112};  // ResNet-50 stem
const Dims kBlock{32, 256, 56, 56};    // its first block

Case softmax(const char* name, const Dims& dims, OpKind kind, algorithm how) {
  return {"softmax", name, kNoOrder,
          [=](Net& n) {
            n.output(n.op(kind, {n.input(dims, {{-8, 8}})}, dims, {{Attr::axis, int64_t{-1}}}));
          },
          [=](Chain& c) { c.softmax(how, c.in(0), c.out(0)); }};
}

/// `dst` stands for a forward result: probabilities, or their logarithms.
Case softmax_backward(const char* name, const Dims& dims, OpKind kind, algorithm how, Range dst) {
  return {"softmax", name, kNoOrder,
          [=](Net& n) {
            const Value diff_dst = n.input(dims);
            n.output(n.op(kind, {diff_dst, n.input(dims, {dst})}, dims, {{Attr::axis, int64_t{-1}}}));
          },
          [=](Chain& c) { c.softmax_backward(how, c.in(0), c.in(1), c.out(0)); }};
}

Case layer_norm() {
  const Dims rows{kTokens[0], kTokens[1]};
  const int64_t features = kTokens[2];
  return {"layer norm", "layer norm forward (BERT)", kNoOrder,
          [=](Net& n) {
            const Value src = n.input(kTokens), scale = n.vector(features), shift = n.vector(features);
            const auto results =
                n.ops(OpKind::LayerNorm, {src, scale, shift}, {n.like(kTokens), Net::floats(rows), Net::floats(rows)},
                      {{Attr::epsilon, kEpsilon}});
            for (Value result : results) n.output(result);
          },
          [](Chain& c) {
            c.layer_norm(c.in(0), {c.in(1), c.in(2)}, c.out(0), {c.out(1), c.out(2)}, kEpsilon);
          }};
}

Case layer_norm_backward() {
  const Dims rows{kTokens[0], kTokens[1]};
  const int64_t features = kTokens[2];
  return {"layer norm", "layer norm backward (BERT)", kNoOrder,
          [=](Net& n) {
            const Value src = n.input(kTokens), diff_dst = n.input(kTokens);
            const Value mean = n.input(rows, {{-0.1f, 0.1f}, Dtype::f32});
            const Value variance = n.input(rows, {{0.3f, 0.4f}, Dtype::f32});
            const Value scale = n.vector(features), shift = n.vector(features);
            const Shape vector = Net::floats({features});
            const auto results = n.ops(OpKind::LayerNormBackward, {src, diff_dst, mean, variance, scale, shift},
                                       {n.like(kTokens), vector, vector}, {{Attr::epsilon, kEpsilon}});
            for (Value result : results) n.output(result);
          },
          [](Chain& c) {
            c.layer_norm_backward(c.in(0), c.in(1), {c.in(2), c.in(3)}, {c.in(4), c.in(5)}, c.out(0),
                                  {c.out(1), c.out(2)}, kEpsilon);
          }};
}

/// BatchNormForwardTraining of `src` with fresh inputs; its five results.
std::vector<Value> batch_norm(Net& n, Value src, const Dims& dims) {
  const int64_t channels = dims[1];
  const Shape vector = Net::floats({channels});
  const Value mean = n.vector(channels), variance = n.vector(channels);
  const Value scale = n.vector(channels), shift = n.vector(channels);
  return n.ops(OpKind::BatchNormForwardTraining, {src, mean, variance, scale, shift},
               {n.like(dims), vector, vector, vector, vector},
               {{Attr::epsilon, kEpsilon}, {Attr::momentum, kMomentum}});
}

/// The chain's outputs: the normalised tensor, running mean and variance, mean and variance of the batch.
void batch_norm(Chain& c) {
  c.batch_norm(c.in(0), {c.in(3), c.in(4)}, c.out(0), {c.out(3), c.out(4)}, kEpsilon);
  c.weighted_sum(kMomentum, c.in(1), 1 - kMomentum, c.out(3), c.out(1));
  c.weighted_sum(kMomentum, c.in(2), 1 - kMomentum, c.out(4), c.out(2));
}

Case batch_norm_forward(const char* name, const Dims& dims) {
  return {"batch norm",
          name,
          kBothOrders,
          [=](Net& n) {
            for (Value result : batch_norm(n, n.input(dims), dims)) n.output(result);
          },
          [](Chain& c) { batch_norm(c); },
          /*read_twice=*/{0}};
}

Case batch_norm_relu(const char* name, const Dims& dims) {
  return {"batch norm",
          name,
          kBothOrders,
          [=](Net& n) {
            std::vector<Value> results = batch_norm(n, n.input(dims), dims);
            results[0] = n.op(OpKind::ReLU, {results[0]}, dims);
            for (Value result : results) n.output(result);
          },
          [](Chain& c) {
            batch_norm(c);
            c.eltwise(algorithm::eltwise_relu, c.out(0), c.out(0));
          },
          /*read_twice=*/{0}};
}

Value relu_if(Net& n, bool relu, Value diff_dst, const Dims& dims) {
  return relu ? n.op(OpKind::ReLUBackward, {n.input(dims), diff_dst}, dims) : diff_dst;
}

/// With `relu`: the ReLU behind the normalisation comes first on the way back.
Case batch_norm_backward(const char* name, const Dims& dims, bool relu) {
  const int64_t channels = dims[1];
  return {
      "batch norm",
      name,
      kBothOrders,
      [=](Net& n) {
        const Value src = n.input(dims), diff_dst = n.input(dims);
        const Value mean = n.vector(channels, {-0.1f, 0.1f}), variance = n.vector(channels, {0.3f, 0.4f});
        const Value scale = n.vector(channels);
        const Shape vector = Net::floats({channels});
        const auto results =
            n.ops(OpKind::BatchNormTrainingBackward, {src, relu_if(n, relu, diff_dst, dims), mean, variance, scale},
                  {n.like(dims), vector, vector}, {{Attr::epsilon, kEpsilon}});
        for (Value result : results) n.output(result);
      },
      [=](Chain& c) {
        Value diff_dst = c.in(1);
        if (relu) {
          diff_dst = c.temporary(dims);
          c.relu_backward(c.in(5), c.in(1), diff_dst);
        }
        c.batch_norm_backward(c.in(0), diff_dst, {c.in(2), c.in(3)}, c.in(4), c.out(0), {c.out(1), c.out(2)}, kEpsilon);
      },
      /*read_twice=*/relu ? std::vector<int>{0, 1, 5} : std::vector<int>{0, 1}};
}

}  // namespace

std::vector<Case> normalisation_cases() {
  return {
      softmax("softmax (attention)", kAttention, OpKind::SoftMax, algorithm::softmax_accurate),
      softmax("log-softmax (vocabulary)", kVocabulary, OpKind::LogSoftmax, algorithm::softmax_log),
      softmax_backward("softmax backward (attention)", kAttention, OpKind::SoftMaxBackward, algorithm::softmax_accurate,
                       {0, 1}),
      softmax_backward("log-softmax backward (vocabulary)", kVocabulary, OpKind::LogSoftmaxBackward,
                       algorithm::softmax_log, {-12, -9}),
      layer_norm(),
      layer_norm_backward(),
      batch_norm_forward("batch norm forward (ResNet-50 stem)", kImages),
      batch_norm_relu("batch norm forward > ReLU (ResNet-50 block)", kBlock),
      batch_norm_backward("batch norm backward (ResNet-50 stem)", kImages, /*relu=*/false),
      batch_norm_backward("ReLU > batch norm backward (ResNet-50 block)", kBlock, /*relu=*/true),
  };
}

}  // namespace partita::bench
