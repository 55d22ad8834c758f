// SPDX-License-Identifier: Apache-2.0
// The scalar functions that activations and their gradients share.
#pragma once

#include <algorithm>
#include <cmath>

namespace partita::ref {

inline constexpr double kSqrtHalf = 0.70710678118654752440;     // 1 / sqrt(2)
inline constexpr double kInvSqrt2Pi = 0.39894228040143267794;   // 1 / sqrt(2 pi)
inline constexpr double kSqrt2OverPi = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = 0.044715;                  // of the tanh approximation of GELU

/// NaN stays NaN.
inline double clip(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
/// log(1 + exp(x)) without overflow.
inline double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
/// Argument of the tanh in GELU's approximation; (1 + tanh(u)) / 2 = sigmoid(2 u) does not cancel.
inline double gelu_inner(double x) { return kSqrt2OverPi * (x + kGeluCubic * x * x * x); }

}  // namespace partita::ref
