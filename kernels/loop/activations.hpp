// SPDX-License-Identifier: Apache-2.0
// Activations of the interpreter that need more than f32 on the way; results are rounded once.
#pragma once

#include <cmath>

namespace partita {

inline constexpr double kRootHalf = 0.70710678118654752440;         // 1 / sqrt(2)
inline constexpr double kNormalPeak = 0.39894228040143267794;       // 1 / sqrt(2 pi)
inline constexpr double kGeluSlopeAtZero = 1.59576912160573071176;  // 2 sqrt(2 / pi)
inline constexpr double kGeluCube = 0.044715;

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

inline float gelu_erf(double x) { return static_cast<float>(x * (0.5 * std::erfc(-x * kRootHalf))); }

/// The derivatives have limits where their terms are 0 times infinity.
inline float slope(double x, double value) { return static_cast<float>(std::isinf(x) ? (x > 0 ? 1.0 : -0.0) : value); }

inline float gelu_erf_slope(double x) {
  return slope(x, 0.5 * std::erfc(-x * kRootHalf) + x * kNormalPeak * std::exp(-0.5 * x * x));
}

inline double gelu_argument(double x) { return kGeluSlopeAtZero * x * (1 + kGeluCube * x * x); }

inline float gelu_tanh(double x) { return static_cast<float>(x * logistic(gelu_argument(x))); }

inline float gelu_tanh_slope(double x) {
  const double v = gelu_argument(x), up = logistic(v), down = logistic(-v);
  return slope(x, up + kGeluSlopeAtZero * x * (1 + 3 * kGeluCube * x * x) * up * down);
}

/// tanh(log(1 + e)) with e = exp(x) and no cancellation.
inline double tanh_softplus(double x) {
  if (x > 40) return 1;
  const double e = std::exp(x), n = e * (e + 2);
  return n / (n + 2);
}

inline float mish(double x) { return static_cast<float>(x * tanh_softplus(x)); }

inline float mish_slope(double x) {
  const double t = tanh_softplus(x);
  return slope(x, t + x * logistic(x) * (1 - t) * (1 + t));
}

}  // namespace partita
