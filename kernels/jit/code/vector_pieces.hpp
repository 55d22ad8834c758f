// SPDX-License-Identifier: Apache-2.0
// Functions of t >= 0 as polynomials of low degree, each on a piece of the range: where a vector holds a coefficient of
// all pieces and an instruction picks each lane's (LaneOp::lookup), that takes half of the multiplications of a
// polynomial over the whole range, and no division. Processors have few units that pick, so it does not pay where
// narrow results need few coefficients anyway.
#pragma once

#include <span>

#include "kernels/jit/code/vector_parts.hpp"

namespace partita::jit {

inline constexpr int kPieces = 16;
/// Pieces cover [0, kPiecesEnd]. There exp(-t^2 / 2) is so small that times any number below 1 it is 0 in f32.
inline constexpr float kPiecesEnd = 18.5f;

enum class Pieces : uint8_t {
  tail,   ///< t times the normal distribution function at -t, divided by exp(-t^2 / 2); relative error 1.2e-7
  slope,  ///< GELU's derivative at -t, divided by exp(-t^2 / 2) and the distance from its root; relative error 9e-8
};

/// All where LaneBuilder::wide.
Value piecewise(LaneBuilder& b, Pieces function, Value t);
/// exp(x) for kExpZero <= x <= kExpHighest or NaN; its factor is rounded once more than that of fine_exponential.
Exponential exponential_by_sixteenths(LaneBuilder& b, Value x);
/// factor * exp(-t^2 / 2) for t up to kPiecesEnd; a multiplication by the result's power is left (`scaled`).
Exponential times_bell(LaneBuilder& b, Value factor, Value t);

/// Table number `table`: kPieces numbers, or twice as many of vector_narrow.hpp.
std::span<const float> looked_up(int32_t table);
/// Number `number` of the table, modulo how many it has.
Value picked(LaneBuilder& b, Value number, int32_t table);

}  // namespace partita::jit
