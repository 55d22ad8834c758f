// SPDX-License-Identifier: Apache-2.0
// What the elementary functions are made of.
#pragma once

#include <optional>
#include <span>

#include "kernels/jit/code/vector_math.hpp"

namespace partita::jit {

inline constexpr int kMantissaBits = 23;
inline constexpr int32_t kSign = INT32_MIN;
/// In the sum with this, the low bits of an f32 hold the other term as a whole number plus the exponent's bias:
/// shifted up by the mantissa they are the bits of two to the power of it.
inline constexpr float kBiasedWhole = 0x1.8p23f + 127;
inline constexpr float kLn2 = 0x1.62e430p-1f;
inline constexpr float kLn2Rest = -0x1.05c610p-29f;  // ln 2 - kLn2
/// Times a whole number up to 511 it is an f32.
inline constexpr float kShortLn2 = 0x1.62e4p-1f;
inline constexpr float kShortLn2Rest = 0x1.7f7d1cp-20f;  // ln 2 - kShortLn2
inline constexpr float kLog2e = 0x1.715476p+0f;
/// Below it exp is less than half of the smallest denormal.
inline constexpr float kExpLowest = -104;
/// From here on exp is infinite.
inline constexpr float kExpHighest = 89;
/// The powers of an Exponential of this are 0, so that they turn even an infinite factor into NaN; lower ones are not
/// allowed.
inline constexpr float kExpZero = -176;
/// The same in narrow precision, where one power of two is enough: tiny results may become 0.
inline constexpr float kNarrowExpZero = -88.1f;

Value polynomial(LaneBuilder& b, Value x, std::span<const float> coefficients);
/// The polynomial for the builder's precision.
Value polynomial(LaneBuilder& b, Value x, std::span<const float> full, std::span<const float> narrow);

/// The machine's max and min hand on their second operand where it is NaN, so both keep NaN.
Value at_least(LaneBuilder& b, float bound, Value x);
Value at_most(LaneBuilder& b, float bound, Value x);

/// x / y with the accuracy of the builder's precision; y is a normal number whose inverse is one, too.
Value quotient(LaneBuilder& b, Value x, Value y);

/// exp on [-ln 2, ln 2]
Value exp_of_rest(LaneBuilder& b, Value r);

/// exp = factor * power * other with a factor between 1/2 and 2: the powers of two are normal numbers however small or
/// large the result, and only the last product rounds to infinity or to a denormal. Where the builder scales, `power`
/// is the exponent of the only power, rounded down.
struct Exponential {
  Value factor, power;
  std::optional<Value> other;
};

/// exp(x) for kExpZero <= x <= kExpHighest, or NaN.
Exponential exponential(LaneBuilder& b, Value x);
/// x / ln 2 as a whole number, and that in the low bits of an f32 with what `exponential_of` makes powers of.
struct WholePower {
  Value biased, number;
};
WholePower nearest_power(LaneBuilder& b, Value x);
/// exp(k ln 2 + r) for |r| up to ln 2 / 2.
Exponential exponential_of(LaneBuilder& b, const WholePower& k, Value r);
/// kExpZero or kNarrowExpZero
float exp_zero(const LaneBuilder& b);
/// exp(x + rest) for exp_zero <= x <= kExpHighest, with a small rest; its factor is nearer to 1 and more accurate.
Exponential fine_exponential(LaneBuilder& b, Value x, std::optional<Value> rest = {});
/// Two to the power of any number, in narrow precision where the builder scales.
Exponential power_of_two(LaneBuilder& b, Value power);
/// x * power * other
Value scaled(LaneBuilder& b, Value x, const Exponential& e);

}  // namespace partita::jit
