// SPDX-License-Identifier: Apache-2.0
// Functions for results of 16 bits whole: polynomials of third degree on pieces of the range, whose coefficients an
// instruction picks from two vectors (LaneOp::lookup). That takes no exponential, no division and half of the time.
#pragma once

#include <span>

#include "kernels/jit/code/vector_math.hpp"

namespace partita::jit {

inline constexpr int kNarrowPieces = 32;

enum class NarrowFunction : uint8_t {
  gelu_tail,             ///< t times the normal distribution function at -t
  gelu_slope_tail,       ///< the derivative of GELU at -t
  tanh_form_tail,        ///< t sigmoid(-v(t)) with v of GELU's tanh form
  tanh_form_slope_tail,  ///< the derivative of GELU's tanh form at -t
  tanh,
  erf,
};

/// The function at t = |x|, where LaneBuilder::narrow_and_wide: relative error 7.4e-5, of a derivative near its root
/// relative to the terms that it is the sum of; 0 where that is nearer than 2^-26, and 1 where that is nearer than
/// 2^-15.
Value narrow_function(LaneBuilder& b, NarrowFunction function, Value x);

/// The first of these tables' numbers.
inline constexpr int32_t kFirstNarrowTable = 64;
std::span<const float> narrow_table(int32_t table);

}  // namespace partita::jit
