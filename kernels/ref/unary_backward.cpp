// SPDX-License-Identifier: Apache-2.0
// Gradients of element-wise operators: diff_src from diff_dst and the forward source or result, in f64.
#include <cmath>

#include "kernels/ref/activations.hpp"
#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"

namespace partita::ref {
namespace {

constexpr int64_t kCheap = 3, kCostly = 20;

/// f(x, dy): x is the forward source, or the forward result where `use_dst` says so.
template <class F>
Status backward(const Problem& problem, Args args, int64_t cost, F f) {
  map(cost, f, out_view(problem, args, 0), in_view(problem, args, 0), in_view(problem, args, 1));
  return {};
}

/// A derivative at `x`, of which `value` holds at finite places: at infinity its terms are 0 times infinity, but it has
/// a limit.
double slope(double x, double value) { return std::isinf(x) ? (x > 0 ? 1.0 : -0.0) : value; }

bool uses_dst(const Problem& problem) { return problem.attrs.flag_or(Attr::use_dst, true); }

}  // namespace

Status abs_backward(const Problem& problem, Args args) {
  return backward(problem, args, kCheap, [](double x, double dy) { return x > 0 ? dy : x < 0 ? -dy : 0; });
}

Status clamp_backward(const Problem& problem, Args args) {
  const double low = problem.attrs.f32(Attr::min), high = problem.attrs.f32(Attr::max);
  return backward(problem, args, kCheap, [=](double x, double dy) { return low < x && x < high ? dy : 0; });
}

Status elu_backward(const Problem& problem, Args args) {
  const double alpha = problem.attrs.f32(Attr::alpha);
  if (uses_dst(problem)) {
    return backward(problem, args, kCheap, [=](double y, double dy) { return y > 0 ? dy : dy * (y + alpha); });
  }
  return backward(problem, args, kCostly, [=](double x, double dy) { return x > 0 ? dy : dy * alpha * std::exp(x); });
}

Status gelu_backward(const Problem& problem, Args args) {
  if (problem.attrs.is(Attr::mode, "gelu_tanh")) {
    return backward(problem, args, kCostly, [](double x, double dy) {
      const double gate = sigmoid_of(2 * gelu_inner(x)), rest = sigmoid_of(-2 * gelu_inner(x));
      const double inner_slope = kSqrt2OverPi * (1 + 3 * kGeluCubic * x * x);
      return dy * slope(x, gate * (1 + 2 * x * rest * inner_slope));
    });
  }
  return backward(problem, args, kCostly, [](double x, double dy) {
    const double cumulative = 0.5 * std::erfc(-x * kSqrtHalf);
    const double density = kInvSqrt2Pi * std::exp(-0.5 * x * x);
    return dy * slope(x, cumulative + x * density);
  });
}

Status hard_sigmoid_backward(const Problem& problem, Args args) {
  const double alpha = problem.attrs.f32(Attr::alpha), beta = problem.attrs.f32(Attr::beta);
  return backward(problem, args, kCheap, [=](double x, double dy) {
    const double y = alpha * x + beta;
    return 0 < y && y < 1 ? dy * alpha : 0;
  });
}

Status hard_swish_backward(const Problem& problem, Args args) {
  return backward(problem, args, kCheap, [](double x, double dy) {
    return x <= -3 ? 0 : x >= 3 ? dy : dy * (2 * x + 3) / 6;
  });
}

Status mish_backward(const Problem& problem, Args args) {
  return backward(problem, args, kCostly, [](double x, double dy) {
    const double t = std::tanh(softplus_of(x));
    return dy * slope(x, t + x * (1 - t * t) * sigmoid_of(x));
  });
}

Status relu_backward(const Problem& problem, Args args) {
  return backward(problem, args, kCheap, [](double x, double dy) { return x > 0 ? dy : 0; });
}

Status sigmoid_backward(const Problem& problem, Args args) {
  if (uses_dst(problem)) {
    return backward(problem, args, kCheap, [](double y, double dy) { return dy * y * (1 - y); });
  }
  return backward(problem, args, kCostly, [](double x, double dy) {
    const double y = sigmoid_of(x);
    return dy * y * (1 - y);
  });
}

Status softplus_backward(const Problem& problem, Args args) {
  const double beta = problem.attrs.f32(Attr::beta);
  return backward(problem, args, kCostly, [=](double x, double dy) { return dy * sigmoid_of(beta * x); });
}

Status sqrt_backward(const Problem& problem, Args args) {
  if (uses_dst(problem)) return backward(problem, args, kCheap, [](double y, double dy) { return dy / (2 * y); });
  return backward(problem, args, kCheap, [](double x, double dy) { return dy / (2 * std::sqrt(x)); });
}

Status tanh_backward(const Problem& problem, Args args) {
  if (uses_dst(problem)) return backward(problem, args, kCheap, [](double y, double dy) { return dy * (1 - y * y); });
  return backward(problem, args, kCostly, [](double x, double dy) {
    const double y = std::tanh(x);
    return dy * (1 - y * y);
  });
}

}  // namespace partita::ref
