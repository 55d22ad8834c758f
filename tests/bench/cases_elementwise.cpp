// SPDX-License-Identifier: Apache-2.0
// Chains of element-wise operators.
#include "tests/bench/case.hpp"

namespace partita::bench {
namespace {

using dnnl::algorithm;

constexpr const char* kGroup = "element-wise";
const Dims kTransformer{32, 512, 1024};  // batch, tokens, features
const Dims kFeedForward{8192, 3072};     // tokens, features of BERT's wide layer

Case one_input(const char* name, OpKind kind, algorithm forward, float alpha = 0) {
  return {kGroup, name, kNoOrder, [kind](Net& n) { n.output(n.op(kind, {n.input(kTransformer)}, kTransformer)); },
          [forward, alpha](Chain& c) { c.eltwise(forward, c.in(0), c.out(0), alpha); }};
}

Case bias_gelu() {
  return {
      kGroup, "BiasAdd > GELU (BERT)", kNoOrder,
      [](Net& n) {
        const Value biased = n.op(OpKind::BiasAdd, {n.input(kFeedForward), n.input({kFeedForward[1]})}, kFeedForward);
        n.output(n.op(OpKind::GELU, {biased}, kFeedForward));
      },
      [](Chain& c) {
        c.add(c.in(0), c.reshaped(c.in(1), {1, kFeedForward[1]}), c.out(0));
        c.eltwise(algorithm::eltwise_gelu_erf, c.out(0), c.out(0));
      }};
}

Case gelu_backward() {
  return {kGroup, "GELU backward", kNoOrder,
          [](Net& n) {
            const Value src = n.input(kFeedForward, {{-4, 4}});
            n.output(n.op(OpKind::GELUBackward, {src, n.input(kFeedForward)}, kFeedForward));
          },
          [](Chain& c) { c.eltwise_backward(algorithm::eltwise_gelu_erf, c.in(0), c.in(1), c.out(0)); }};
}

Case relu_backward_add() {
  return {
      kGroup, "ReLU backward > Add", kNoOrder,
      [](Net& n) {
        const Value passed = n.op(OpKind::ReLUBackward, {n.input(kTransformer), n.input(kTransformer)}, kTransformer);
        n.output(n.op(OpKind::Add, {passed, n.input(kTransformer)}, kTransformer));
      },
      [](Chain& c) {
        c.relu_backward(c.in(0), c.in(1), c.out(0));
        c.add(c.out(0), c.in(2), c.out(0));
      }};
}

Case multiply_add() {
  return {kGroup, "Multiply > Add", kNoOrder,
          [](Net& n) {
            const Value product = n.op(OpKind::Multiply, {n.input(kTransformer), n.input(kTransformer)}, kTransformer);
            n.output(n.op(OpKind::Add, {product, n.input(kTransformer)}, kTransformer));
          },
          [](Chain& c) {
            c.multiply(c.in(0), c.in(1), c.out(0));
            c.add(c.out(0), c.in(2), c.out(0));
          }};
}

Case silu() {
  return {kGroup, "Sigmoid > Multiply (SiLU)", kNoOrder,
          [](Net& n) {
            const Value src = n.input(kTransformer, {{-4, 4}});
            n.output(n.op(OpKind::Multiply, {src, n.op(OpKind::Sigmoid, {src}, kTransformer)}, kTransformer));
          },
          [](Chain& c) {
            c.eltwise(algorithm::eltwise_logistic, c.in(0), c.out(0));
            c.multiply(c.in(0), c.out(0), c.out(0));
          }};
}

}  // namespace

std::vector<Case> elementwise_cases() {
  return {
      one_input("ReLU", OpKind::ReLU, algorithm::eltwise_relu),
      one_input("GELU", OpKind::GELU, algorithm::eltwise_gelu_erf),
      gelu_backward(),
      relu_backward_add(),
      multiply_add(),
      silu(),
      bias_gelu(),
  };
}

}  // namespace partita::bench
