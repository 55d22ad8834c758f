// SPDX-License-Identifier: Apache-2.0
// Elementary functions as lane operations, accurate to 4 ulp in f32 over the whole range, with the C library's answers
// for NaN, infinities and zeros.
#pragma once

#include "kernels/jit/lanes.hpp"

namespace partita::jit {

using Value = LaneBuilder::Value;

Value exp_of(LaneBuilder& b, Value x);
Value log_of(LaneBuilder& b, Value x);
Value tanh_of(LaneBuilder& b, Value x);
Value erf_of(LaneBuilder& b, Value x);
/// 1 / (1 + exp(-x))
Value sigmoid_of(LaneBuilder& b, Value x);
/// log(1 + exp(x))
Value softplus_of(LaneBuilder& b, Value x);
/// tanh(log(1 + exp(x))), which Mish multiplies by x; more accurate and cheaper than the two functions in turn.
Value tanh_softplus_of(LaneBuilder& b, Value x);

}  // namespace partita::jit
