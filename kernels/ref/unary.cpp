// SPDX-License-Identifier: Apache-2.0
// Element-wise operators of one input, in f64.
#include <cmath>

#include "kernels/ref/activations.hpp"
#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"

namespace partita::ref {
namespace {

constexpr int64_t kCheap = 2, kCostly = 20;

template <class F>
Status unary(const Problem& problem, Args args, int64_t cost, F f) {
  map(cost, f, out_view(problem, args, 0), in_view(problem, args, 0));
  return {};
}

}  // namespace

Status abs(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return std::fabs(x); });
}

Status clamp(const Problem& problem, Args args) {
  const double low = problem.attrs.f32(Attr::min), high = problem.attrs.f32(Attr::max);
  return unary(problem, args, kCheap, [=](double x) { return x < low ? low : x > high ? high : x; });
}

Status elu(const Problem& problem, Args args) {
  const double alpha = problem.attrs.f32(Attr::alpha);
  return unary(problem, args, kCostly, [=](double x) { return x <= 0 ? alpha * std::expm1(x) : x; });
}

Status exp(const Problem& problem, Args args) {
  return unary(problem, args, kCostly, [](double x) { return std::exp(x); });
}

Status gelu(const Problem& problem, Args args) {
  if (problem.attrs.is(Attr::mode, "gelu_tanh")) {
    return unary(problem, args, kCostly, [](double x) { return x * sigmoid_of(2 * gelu_inner(x)); });
  }
  return unary(problem, args, kCostly, [](double x) { return 0.5 * x * std::erfc(-x * kSqrtHalf); });
}

Status hard_sigmoid(const Problem& problem, Args args) {
  const double alpha = problem.attrs.f32(Attr::alpha), beta = problem.attrs.f32(Attr::beta);
  return unary(problem, args, kCheap, [=](double x) { return clip(alpha * x + beta, 0, 1); });
}

Status hard_swish(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return x * clip(x + 3, 0, 6) / 6; });
}

Status leaky_relu(const Problem& problem, Args args) {
  const double alpha = problem.attrs.f32(Attr::alpha);
  return unary(problem, args, kCheap, [=](double x) { return x > 0 ? x : alpha * x; });
}

Status log(const Problem& problem, Args args) {
  return unary(problem, args, kCostly, [](double x) { return std::log(x); });
}

Status mish(const Problem& problem, Args args) {
  return unary(problem, args, kCostly, [](double x) { return x * std::tanh(softplus_of(x)); });
}

Status pow(const Problem& problem, Args args) {
  const double exponent = problem.attrs.f32(Attr::beta);
  return unary(problem, args, kCostly, [=](double x) { return std::pow(x, exponent); });
}

Status reciprocal(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return 1 / x; });
}

Status relu(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return x < 0 ? 0 : x; });
}

Status round(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return std::nearbyint(x); });
}

Status sigmoid(const Problem& problem, Args args) {
  return unary(problem, args, kCostly, [](double x) { return sigmoid_of(x); });
}

Status softplus(const Problem& problem, Args args) {
  const double beta = problem.attrs.f32(Attr::beta);
  return unary(problem, args, kCostly, [=](double x) { return softplus_of(beta * x) / beta; });
}

Status sqrt(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return std::sqrt(x); });
}

Status square(const Problem& problem, Args args) {
  return unary(problem, args, kCheap, [](double x) { return x * x; });
}

Status tanh(const Problem& problem, Args args) {
  return unary(problem, args, kCostly, [](double x) { return std::tanh(x); });
}

}  // namespace partita::ref
