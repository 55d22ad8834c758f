// SPDX-License-Identifier: Apache-2.0
// Elementary functions as lane operations, accurate to 4 ulp in f32 over the whole range, with the C library's answers
// for NaN, infinities and zeros.
#pragma once

#include "kernels/jit/code/lanes.hpp"

namespace partita::jit {

using Value = LaneBuilder::Value;

Value exp_of(LaneBuilder& b, Value x);
/// exp(x) for x <= 0, or NaN.
Value exp_not_positive_of(LaneBuilder& b, Value x);
Value expm1_of(LaneBuilder& b, Value x);
Value log_of(LaneBuilder& b, Value x);
Value tanh_of(LaneBuilder& b, Value x);
Value erf_of(LaneBuilder& b, Value x);
/// 1 / (1 + exp(-x))
Value sigmoid_of(LaneBuilder& b, Value x);
/// log(1 + exp(x))
Value softplus_of(LaneBuilder& b, Value x);

/// GELU, x times the normal distribution function, with the accuracy of its tail.
Value gelu_erf_of(LaneBuilder& b, Value x);
/// GELU by its definition through tanh.
Value gelu_tanh_of(LaneBuilder& b, Value x);
/// x tanh(log(1 + exp(x)))
Value mish_of(LaneBuilder& b, Value x);
/// Derivatives of the three; that of the first is accurate near its root too.
Value gelu_erf_slope_of(LaneBuilder& b, Value x);
Value gelu_tanh_slope_of(LaneBuilder& b, Value x);
Value mish_slope_of(LaneBuilder& b, Value x);

/// x to the power of y, as std::pow answers for zeros, infinities, NaN and negative x.
Value pow_of(LaneBuilder& b, Value x, Value y);

}  // namespace partita::jit
