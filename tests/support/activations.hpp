// SPDX-License-Identifier: Apache-2.0
// Activations that are single instructions, by their definitions, in long double.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/expr.hpp"

namespace partita::test {

inline long double sigmoid_exactly(long double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
/// tanh(log(1 + exp(x))), with which nothing cancels for negative x.
inline long double tanh_softplus_exactly(long double x) {
  if (x > 60) return 1;
  const long double e = std::exp(x);
  return e * (e + 2) / (e * (e + 2) + 2);
}

inline long double normal_distribution_exactly(long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
inline long double normal_density_exactly(long double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<long double>);
}

inline constexpr long double kGeluCube = 0.044715L;
/// What GELU's tanh form takes the logistic function of is this times x + kGeluCube x^3.
inline long double gelu_scale() { return 2 * std::sqrt(2 / std::numbers::pi_v<long double>); }

inline long double gelu_tanh_slope_exactly(long double x) {
  const long double v = gelu_scale() * (x + kGeluCube * x * x * x), up = sigmoid_exactly(v);
  return up + gelu_scale() * x * (1 + 3 * kGeluCube * x * x) * up * sigmoid_exactly(-v);
}

inline long double mish_slope_exactly(long double x) {
  if (x > 5000) return 1;
  // 1 - t^2 = 4 (n + 1) / (n + 2)^2 with n = e (e + 2) does not cancel where t = tanh(softplus(x)) is near 1.
  const long double e = std::exp(-std::fabs(x)), n = x > 0 ? (1 + 2 * e) / (e * e) : e * (e + 2);
  return tanh_softplus_exactly(x) + x * sigmoid_exactly(x) * 4 * (n + 1) / ((n + 2) * (n + 2));
}

inline long double activation(ExprOp op, long double x) {
  const auto limited = [x](auto slope) { return std::isinf(x) ? (x > 0 ? 1.0L : -0.0L) : slope(x); };
  switch (op) {
    case ExprOp::expm1: return std::expm1(x);
    case ExprOp::gelu_erf: return x * normal_distribution_exactly(x);
    case ExprOp::gelu_tanh: return x * sigmoid_exactly(gelu_scale() * (x + kGeluCube * x * x * x));
    case ExprOp::mish: return x * tanh_softplus_exactly(x);
    case ExprOp::gelu_erf_slope:
      return limited([](long double v) { return normal_distribution_exactly(v) + v * normal_density_exactly(v); });
    case ExprOp::gelu_tanh_slope: return limited(gelu_tanh_slope_exactly);
    case ExprOp::mish_slope: return limited(mish_slope_exactly);
    default: return std::numeric_limits<long double>::quiet_NaN();
  }
}

}  // namespace partita::test
