// SPDX-License-Identifier: Apache-2.0
// Elementary functions as polynomials and ratios over lane operations. All coefficients are minimax fits: iteratively
// reweighted least squares (Lawson) in quadruple precision on 600 Chebyshev nodes, the weight making errors relative to
// the function; each coefficient in turn, lowest power first, is rounded to f32 and the others are fitted again. Those
// named narrow are for results of 16 bits.
#include "kernels/jit/code/vector_math.hpp"

#include "kernels/jit/code/vector_narrow.hpp"
#include "kernels/jit/code/vector_parts.hpp"
#include "kernels/jit/code/vector_pieces.hpp"

namespace partita::jit {
namespace {

/// exp on [-ln 2, ln 2], relative error 1.4e-8.
constexpr float kExp[] = {1.0f,         1.0f,           0.500000358f,   0.16666618f,
                          0.041661229f, 0.00833592936f, 0.00141047477f, 0.000196307374f};
/// exp on [-ln 2 / 2, ln 2 / 2], relative error 3.1e-9.
constexpr float kExpHalf[] = {1.0f, 1.0f, 0.49999994f, 0.166665211f, 0.0416682586f, 0.00836866815f, 0.00138213055f};
/// exp on [-ln 2, ln 2], relative error 5.6e-6.
constexpr float kNarrowExp[] = {1.0f, 0.99998188f, 0.499869823f, 0.166818127f, 0.042580083f, 0.00816607382f};
/// exp on [-ln 2 / 2, ln 2 / 2], relative error 2.6e-6.
constexpr float kNarrowExpHalf[] = {0.999999285f, 0.999963522f, 0.500043154f, 0.167907909f, 0.0414604433f};
/// Two to the power of [0, 1]: exactly 1 at 0, so that what a softmax is sure of has no error; relative error 3.6e-6,
/// and 5.5e-7 around 0.28, where the derivative of Mish has its root.
constexpr float kNarrowExp2[] = {1.0f, 0.693036914f, 0.241242588f, 0.0523758866f, 0.0133374715f};
/// ln 2 as a sum of positive numbers.
constexpr float kBelowLn2 = 0x1.62e42ep-1f, kBelowLn2Rest = 0x1.efa39ep-25f;
/// expm1(2r) / r on [-ln 2 / 4, ln 2 / 4], relative error 1.4e-8.
constexpr float kExpm1Double[] = {2.0f, 1.99999988f, 1.33332372f, 0.666678965f, 0.267720699f, 0.0887724534f};
/// The same, relative error 1.5e-5.
constexpr float kNarrowExpm1Double[] = {1.9999702f, 2.00005007f, 1.3413378f, 0.666661501f};
/// (log(1 + f) - f) / f^2 on [sqrt(1/2) - 1, sqrt(2) - 1], error relative to the logarithm 3.0e-8.
constexpr float kLogRest[] = {-0.49999994f,  0.333339691f, -0.250016183f, 0.199610949f,
                              -0.165718734f, 0.149293169f, -0.143069893f, 0.0870584697f};
/// log(1 + e) / e on [0, 1], relative error 5.3e-9.
constexpr float kLog1p[] = {1.0f,          -0.499999315f, 0.333304703f,   -0.24958156f,  0.196931824f,
                            -0.153490216f, 0.106697984f,  -0.0575585775f, 0.0201483499f, -0.00330601609f};
/// erf(x) / x - 1 in x^2 on [0, 0.95^2], error relative to erf 2.7e-8.
constexpr float kErfSmall[] = {0.128379136f,   -0.376124114f,  0.112810135f,
                               -0.0267392397f, 0.00495520839f, -0.000580718624f};
/// The eighth root of erfc on [0.95, 4], error relative to erf 2.3e-8.
constexpr float kErfcRoot[] = {1.00070703f,   -0.144561082f,   -0.0622228272f, -0.0107116234f,
                               0.0126237152f, -0.00239795912f, 0.000142921868f};

}  // namespace

Value polynomial(LaneBuilder& b, Value x, std::span<const float> coefficients) {
  Value sum = b.constant(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = b.fma(sum, x, b.constant(coefficients[i]));
  return sum;
}

Value polynomial(LaneBuilder& b, Value x, std::span<const float> full, std::span<const float> narrow) {
  return polynomial(b, x, b.precision == Precision::full ? full : narrow);
}

Value at_least(LaneBuilder& b, float bound, Value x) { return b.op(LaneOp::max, b.constant(bound), x); }
Value at_most(LaneBuilder& b, float bound, Value x) { return b.op(LaneOp::min, b.constant(bound), x); }

Value exp_of_rest(LaneBuilder& b, Value r) { return polynomial(b, r, kExp, kNarrowExp); }

namespace {

/// x - k ln 2
Value without_ln2(LaneBuilder& b, Value x, Value k, float ln2, float rest) {
  const Value r = b.fnma(k, b.constant(ln2), x);
  return b.precision == Precision::full ? b.fnma(k, b.constant(rest), r) : r;
}

}  // namespace

Exponential exponential(LaneBuilder& b, Value x) {
  if (b.wide) return b.precision == Precision::full ? exponential_by_sixteenths(b, x) : fine_exponential(b, x);
  const Value biased = b.fma(x, b.constant(kLog2e / 2), b.constant(kBiasedWhole));
  const Value k = b.sub(biased, b.constant(kBiasedWhole));
  const Value r = without_ln2(b, x, k, 2 * kLn2, 2 * kLn2Rest);
  const Value power = b.op(LaneOp::shl, biased, 0, 0, kMantissaBits);
  return {exp_of_rest(b, r), power, power};
}

Exponential power_of_two(LaneBuilder& b, Value power) {
  return {polynomial(b, b.op(LaneOp::fraction, power), kNarrowExp2), power, {}};
}

Exponential fine_exponential(LaneBuilder& b, Value x, std::optional<Value> rest) {
  if (b.narrow_and_wide()) return power_of_two(b, b.mul(x, b.constant(kLog2e)));
  const WholePower k = nearest_power(b, x);
  Value r = without_ln2(b, x, k.number, kLn2, kLn2Rest);
  if (rest) r = b.add(r, *rest);
  return exponential_of(b, k, r);
}

WholePower nearest_power(LaneBuilder& b, Value x) {
  const Value bias = b.constant(b.precision == Precision::full ? kBiasedWhole + 127 : kBiasedWhole);
  const Value biased = b.fma(x, b.constant(kLog2e), bias);
  return {biased, b.sub(biased, bias)};
}

Exponential exponential_of(LaneBuilder& b, const WholePower& k, Value r) {
  const Value factor = polynomial(b, r, kExpHalf, kNarrowExpHalf);
  if (b.wide) return {factor, k.number, {}};
  if (b.precision == Precision::narrow) return {factor, b.op(LaneOp::shl, k.biased, 0, 0, kMantissaBits), {}};
  // Half of k and the other half; shifts drop what else is in the bits.
  const Value half = b.op(LaneOp::shr, k.biased, 0, 0, 1), other = b.op(LaneOp::isub, k.biased, half);
  return {factor, b.op(LaneOp::shl, half, 0, 0, kMantissaBits), b.op(LaneOp::shl, other, 0, 0, kMantissaBits)};
}

float exp_zero(const LaneBuilder& b) { return b.precision == Precision::full || b.wide ? kExpZero : kNarrowExpZero; }

Value scaled(LaneBuilder& b, Value x, const Exponential& e) {
  if (b.wide) return b.op(LaneOp::scale, x, e.power);
  const Value once = b.mul(x, e.power);
  return e.other ? b.mul(once, *e.other) : once;
}

namespace {

Value exp_within(LaneBuilder& b, Value x) {
  const Exponential e = exponential(b, x);
  return scaled(b, e.factor, e);
}

/// Where the builder is both, `exponential` takes every number.
Value at_least_lowest(LaneBuilder& b, Value x) { return b.narrow_and_wide() ? x : at_least(b, kExpLowest, x); }

/// expm1(2x) = 2^k expm1(2r) + (2^k - 1) with x = k ln 2 / 2 + r, times `unit`, a power of two.
Value expm1_double(LaneBuilder& b, Value x, int unit_exponent) {
  const float bias = kBiasedWhole + static_cast<float>(unit_exponent);
  const Value biased = b.fma(x, b.constant(2 * kLog2e), b.constant(bias));
  const Value k = b.sub(biased, b.constant(bias));
  const Value r = b.fnma(k, b.constant(kBelowLn2Rest / 2), b.fnma(k, b.constant(kBelowLn2 / 2), x));
  const Value power = b.op(LaneOp::shl, biased, 0, 0, kMantissaBits);
  // With a positive rest of ln 2, r = -0 where x is; the negated difference of equal numbers is -0, which leaves the
  // sign of expm1(2r) = -0 alone; +0 would not.
  const Value unit = b.bits((unit_exponent + 127) << kMantissaBits);
  const Value power_minus_unit = b.op(LaneOp::xor_, b.sub(unit, power), b.bits(kSign));
  return b.fma(b.mul(r, polynomial(b, r, kExpm1Double, kNarrowExpm1Double)), power, power_minus_unit);
}

}  // namespace

Value exp_of(LaneBuilder& b, Value x) {
  return exp_not_positive_of(b, b.narrow_and_wide() ? x : at_most(b, kExpHighest, x));
}

Value exp_not_positive_of(LaneBuilder& b, Value x) { return exp_within(b, at_least_lowest(b, x)); }

/// Half of the result in f32 first, because 2^128 is none.
Value expm1_of(LaneBuilder& b, Value x) {
  constexpr float kMinusOne = -18;  // expm1 of it is -1 in f32
  const Value half = b.mul(at_least(b, kMinusOne, at_most(b, kExpHighest, x)), b.constant(0.5f));
  const Value result = expm1_double(b, half, -1);
  return b.add(result, result);
}

/// log(2^k (1 + f)) = k ln 2 + log(1 + f) with 1 + f between the roots of 1/2 and 2.
Value log_of(LaneBuilder& b, Value x) {
  constexpr float kSmallestNormal = 0x1p-126f, kNormalize = 0x1p23f;
  const Value denormal = b.op(LaneOp::gt, b.constant(kSmallestNormal), x);
  const Value normal = b.select(denormal, b.mul(x, b.constant(kNormalize)), x);
  // k stays where an f32 has its exponent; only the factor of ln 2 undoes that.
  const Value root_half = b.constant(0x1.6a09e6p-1f);
  const Value exponent = b.op(LaneOp::and_, b.op(LaneOp::isub, normal, root_half), b.bits(-1 << kMantissaBits));
  const Value f = b.sub(b.op(LaneOp::isub, normal, exponent), b.constant(1));
  const Value lowered = b.op(LaneOp::and_, denormal, b.bits(kMantissaBits << kMantissaBits));
  const Value k = b.op(LaneOp::to_float, b.op(LaneOp::isub, exponent, lowered));
  const Value near_one = b.fma(b.mul(f, f), polynomial(b, f, kLogRest), f);
  const Value result = b.fma(k, b.constant(kLn2 * 0x1p-23f), near_one);

  const Value infinity = b.bits(0x7f800000);
  const Value finite = b.select(b.op(LaneOp::gt, infinity, x), result, x);
  const Value above_zero = b.select(b.op(LaneOp::eq, x, b.constant(0)), b.bits(kSign | 0x7f800000), finite);
  return b.op(LaneOp::or_, above_zero, b.op(LaneOp::gt, b.constant(0), x));  // all bits set is a NaN
}

Value quotient(LaneBuilder& b, Value x, Value y) {
  return b.narrow_and_wide() ? b.mul(x, b.op(LaneOp::inverse, y)) : b.div(x, y);
}

namespace {

Value with_sign_of(LaneBuilder& b, Value size, Value x) {
  return b.op(LaneOp::or_, size, b.op(LaneOp::and_, x, b.bits(kSign)));
}

}  // namespace

/// expm1(2x) / (expm1(2x) + 2)
Value tanh_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) return with_sign_of(b, narrow_function(b, NarrowFunction::tanh, x), x);
  constexpr float kOne = 10;  // tanh of it is 1 in f32, and so is that of any larger number
  const Value expm1 = expm1_double(b, at_least(b, -kOne, at_most(b, kOne, x)), 0);
  return b.div(expm1, b.add(expm1, b.constant(2)));
}

/// Small x: x + x P(x^2). Others: 1 - Q(|x|)^8 with the sign of x.
Value erf_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) return with_sign_of(b, narrow_function(b, NarrowFunction::erf, x), x);
  constexpr float kSmall = 0.95f, kOne = 4;  // erf of the latter is 1 in f32
  const Value size = b.op(LaneOp::and_, x, b.bits(INT32_MAX));
  const Value small = b.fma(x, polynomial(b, b.mul(x, x), kErfSmall), x);
  const Value root = polynomial(b, at_most(b, kOne, size), kErfcRoot);
  const Value square = b.mul(root, root), fourth = b.mul(square, square);
  const Value large = b.fnma(fourth, fourth, b.constant(1));
  return b.select(b.op(LaneOp::gt, b.constant(kSmall), size), small, with_sign_of(b, large, x));
}

/// exp(x) / (1 + exp(x)), which keeps its accuracy where the result is denormal; 1 / (1 + exp(-x)) takes less.
Value sigmoid_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) {
    const Exponential e = power_of_two(b, b.mul(x, b.constant(-kLog2e)));
    return b.op(LaneOp::inverse, b.add(scaled(b, e.factor, e), b.constant(1)));
  }
  constexpr float kOne = 30;  // sigmoid of it is 1 in f32
  const Value e = exp_within(b, at_least_lowest(b, at_most(b, kOne, x)));
  return b.div(e, b.add(e, b.constant(1)));
}

/// max(x, 0) + log(1 + exp(-|x|))
Value softplus_of(LaneBuilder& b, Value x) {
  const Value negative = b.op(LaneOp::or_, x, b.bits(kSign));
  const Value e = exp_within(b, at_least_lowest(b, negative));
  const Value log1p = b.mul(e, polynomial(b, e, kLog1p));
  return b.add(at_least(b, 0, x), log1p);
}

}  // namespace partita::jit
