// SPDX-License-Identifier: Apache-2.0
// GELU in both forms, Mish, and their derivatives. Each is written as max(x, 0) less a term that vanishes on both
// sides, which is computed without cancellation and meets denormals in its last product only.
#include "kernels/jit/code/vector_narrow.hpp"
#include "kernels/jit/code/vector_parts.hpp"
#include "kernels/jit/code/vector_pieces.hpp"

namespace partita::jit {
namespace {

/// An argument at which an exponent reaches exp_zero, in both precisions.
struct End {
  float full, narrow;
  float of(const LaneBuilder& b) const { return exp_zero(b) == kExpZero ? full : narrow; }
};
/// Half of it squared.
constexpr End kBellEnd = {18.76f, 13.27f};
/// The exponent of GELU's tanh form.
constexpr End kTanhFormEnd = {12.96f, 10.03f};
/// Mish is x from here on, and its derivative 1.
constexpr float kMishEnd = 20;

/// Polynomials in m = (t - middle) / (t + middle) for t in [0, kBellEnd]; of the middles around 2 each is the one whose
/// lowest coefficient is nearest to an f32.
constexpr float kTailMiddle = 1.7734375f, kSlopeMiddle = 2.015625f;
/// The normal distribution function at -t, times t + middle, divided by exp(-t^2 / 2); relative error 1.9e-8.
constexpr float kTail[] = {0.650829077f,    -0.274173647f,   -0.0145650813f,  0.03451363f,
                           0.00970054977f,  -0.0038757415f,  -0.00384882907f, -0.00081628497f,
                           0.000716526061f, 0.000540554407f, 1.41155124e-06f, -7.36234142e-05f};
/// The same for results of 16 bits: relative error 1.7e-5.
constexpr float kNarrowTailMiddle = 2.25f;
constexpr float kNarrowTail[] = {0.691442072f,  -0.386324257f,  0.0798825175f,
                                 0.0273379609f, -0.0095888935f, -0.00425878726f};
/// GELU's derivative at -t, divided by exp(-t^2 / 2) and the distance from its root; relative error 2.3e-8.
constexpr float kSlopeTail[] = {0.504015088f,     -0.137143254f,   0.0302578881f,   0.0048870407f,   -0.00242080982f,
                                -0.000995259616f, 0.000133380396f, 0.000200453404f, 2.60847301e-05f, -1.53585024e-05f};
/// The same for results of 16 bits: relative error 2e-5.
constexpr float kNarrowSlopeMiddle = 2.5f;
constexpr float kNarrowSlopeTail[] = {0.489661276f, -0.12905395f, 0.0447079577f, -0.0041418476f, -0.0024735597f};
/// That root as a sum: the first has so few bits that its distance from t is exact for t in [0.5, 2.75].
constexpr float kRoot = 0x1.80ead0p-1f, kRootRest = 4.7490195e-08f;

/// 2 sqrt(2 / pi), also as a sum of a number of 21 bits and another one, and that times 0.044715, as a sum.
constexpr float kLinear = 0x1.988454p+0f, kShortLinear = 0x1.98845p+0f, kLinearRest = 0x1.9ea1b2p-23f;
constexpr float kCubic = 0x1.2444f2p-4f, kCubicRest = 0x1.49b16ap-29f;
constexpr float kCubicSlope = 0x1.b6676cp-3f;

/// A number with the rest that one f32 does not hold.
struct Pair {
  Value high, low;
};

Pair product(LaneBuilder& b, Value x, Value y) {
  const Value high = b.mul(x, y);
  return {high, b.fma(x, y, b.op(LaneOp::xor_, high, b.bits(kSign)))};
}

Value negated(LaneBuilder& b, Value x) { return b.op(LaneOp::xor_, x, b.bits(kSign)); }
Value size_of(LaneBuilder& b, Value x) { return b.op(LaneOp::and_, x, b.bits(INT32_MAX)); }

/// |x|, at most `end` for positive x. Minus infinity stays, so that its product with 0 is NaN as in the definition.
Value falling_size(LaneBuilder& b, Value x, float end) { return b.op(LaneOp::max, at_most(b, end, x), negated(b, x)); }

/// exp(-t^2 / 2) for 0 <= t <= kBellEnd. The product of k and kShortLn2 is exact, so what is left of the square when it
/// is taken away is rounded once.
Exponential bell(LaneBuilder& b, Value t) {
  const Value half = b.mul(t, b.constant(-0.5f)), x = b.mul(half, t);
  if (b.precision == Precision::narrow) return fine_exponential(b, x);
  const WholePower k = nearest_power(b, x);
  const Value r = b.fma(half, t, b.mul(k.number, b.constant(-kShortLn2)));
  return exponential_of(b, k, b.fnma(k.number, b.constant(kShortLn2Rest), r));
}

/// t / (t + middle), and m = (t - middle) / (t + middle).
struct TailPlace {
  Value share, m;
};

TailPlace tail_place(LaneBuilder& b, Value t, float full_middle, float narrow_middle) {
  const float middle = b.precision == Precision::full ? full_middle : narrow_middle;
  const Value share = b.div(t, b.add(t, b.constant(middle)));
  return {share, b.fma(share, b.constant(2), b.constant(-1))};
}

/// Keeps numbers normal that are multiplied once more.
constexpr float kLift = 0x1p24f;

bool lifts(const LaneBuilder& b) { return b.wide && b.precision == Precision::full; }

/// x * power * t * other: an infinite t meets a power of 0, a large one does not become infinite before, unless it is
/// lifted (by a power above that of exp_zero).
Value scaled(LaneBuilder& b, Value x, const Exponential& e, Value t) {
  if (lifts(b)) return b.mul(b.mul(scaled(b, b.mul(x, b.constant(kLift)), e), t), b.constant(1 / kLift));
  if (b.wide) return b.mul(scaled(b, x, e), t);
  const Value product = b.mul(b.mul(x, e.power), t);
  return e.other ? b.mul(product, *e.other) : product;
}

/// from - x * power * t * other
Value less_scaled(LaneBuilder& b, Value from, Value x, const Exponential& e, Value t) {
  if (lifts(b)) return b.fnma(b.mul(scaled(b, b.mul(x, b.constant(kLift)), e), t), b.constant(1 / kLift), from);
  return b.sub(from, scaled(b, x, e, t));
}

/// exp of minus the argument of GELU's tanh form, doubled, for 0 <= t <= kTanhFormEnd.
Exponential tanh_form(LaneBuilder& b, Value t) {
  if (b.precision == Precision::narrow) {
    const Value slope = b.fma(b.mul(t, t), b.constant(-kCubic), b.constant(-kLinear));
    return fine_exponential(b, at_least(b, exp_zero(b), b.mul(t, slope)));
  }
  // The argument as a sum of two numbers. What the slope loses is one, because kShortLinear has so few bits that its
  // distance from the slope, which is less than 16, is exact.
  const Value cubic = b.constant(-kCubic), linear = b.constant(-kShortLinear);
  const Value square = b.mul(t, t), square_excess = b.fnma(t, t, square);
  const Value slope = b.fma(cubic, square, linear), slope_lost = b.fma(cubic, square, b.sub(linear, slope));
  const Value constants_rest = b.fma(square, b.constant(-kCubicRest), b.constant(-kLinearRest));
  const Value slope_rest = b.fnma(cubic, square_excess, b.add(constants_rest, slope_lost));
  const Value whole = b.mul(t, slope), whole_excess = b.fnma(t, slope, whole);
  return fine_exponential(b, at_least(b, exp_zero(b), whole), b.sub(b.mul(t, slope_rest), whole_excess));
}

/// x times how far t is below the point -t where GELU's derivative is 0.
Value times_root_distance(LaneBuilder& b, Value x, Value t) {
  return b.fma(x, b.sub(b.constant(kRoot), t), b.mul(x, b.constant(kRootRest)));
}

/// g where x is negative, otherwise 1 - g.
Value mirrored(LaneBuilder& b, Value x, Value g) {
  return b.select(b.op(LaneOp::gt, b.constant(0), x), g, b.sub(b.constant(1), g));
}

/// max(x, 0) less a tail; for minus infinity NaN, as the product with 0 that is its definition.
Value less_tail(LaneBuilder& b, Value x, NarrowFunction tail) {
  return b.sub(b.op(LaneOp::rectified, x), narrow_function(b, tail, x));
}

}  // namespace

/// x Phi(x) = max(x, 0) - |x| Phi(-|x|)
Value gelu_erf_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) return less_tail(b, x, NarrowFunction::gelu_tail);
  if (b.wide) {
    const Value below = at_most(b, kPiecesEnd, x), t = size_of(b, at_least(b, -kPiecesEnd, below));
    const Exponential tail = times_bell(b, piecewise(b, Pieces::tail, t), t);
    const Value zero = b.mul(below, b.constant(0));  // NaN for minus infinity, whose product with 0 the definition has
    return b.sub(b.op(LaneOp::max, x, zero), scaled(b, tail.factor, tail));
  }
  const Value t = falling_size(b, x, kBellEnd.of(b));
  const Exponential e = bell(b, at_most(b, kBellEnd.of(b), t));
  const TailPlace place = tail_place(b, t, kTailMiddle, kNarrowTailMiddle);
  const Value tail = b.mul(b.mul(e.factor, place.share), polynomial(b, place.m, kTail, kNarrowTail));
  return b.sub(at_least(b, 0, x), scaled(b, tail, e));
}

/// At -t: exp(-t^2 / 2) (root - t) P(t); at t: 1 less that.
Value gelu_erf_slope_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) return mirrored(b, x, narrow_function(b, NarrowFunction::gelu_slope_tail, x));
  if (b.wide) {
    const Value t = at_most(b, kPiecesEnd, size_of(b, x));
    const Exponential slope = times_bell(b, times_root_distance(b, piecewise(b, Pieces::slope, t), t), t);
    return mirrored(b, x, scaled(b, slope.factor, slope));
  }
  const Value t = at_most(b, kBellEnd.of(b), size_of(b, x));
  const Exponential e = bell(b, t);
  const TailPlace place = tail_place(b, t, kSlopeMiddle, kNarrowSlopeMiddle);
  const Value tail = b.mul(e.factor, polynomial(b, place.m, kSlopeTail, kNarrowSlopeTail));
  return mirrored(b, x, scaled(b, times_root_distance(b, tail, t), e));
}

/// max(x, 0) - |x| e / (1 + e)
Value gelu_tanh_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) return less_tail(b, x, NarrowFunction::tanh_form_tail);
  const Value t = falling_size(b, x, kTanhFormEnd.of(b));
  const Exponential e = tanh_form(b, at_most(b, kTanhFormEnd.of(b), t));
  const Value below = b.add(scaled(b, e.factor, e), b.constant(1));
  return less_scaled(b, at_least(b, 0, x), b.div(e.factor, below), e, t);
}

/// At -t, with v the argument: e ((1 + e) - t v') / (1 + e)^2
Value gelu_tanh_slope_of(LaneBuilder& b, Value x) {
  if (b.narrow_and_wide()) return mirrored(b, x, narrow_function(b, NarrowFunction::tanh_form_slope_tail, x));
  const Value t = at_most(b, kTanhFormEnd.of(b), size_of(b, x));
  const Exponential parts = tanh_form(b, t);
  const Value e = scaled(b, parts.factor, parts), one = b.constant(1), cubic = b.constant(kCubicSlope);
  const Pair square = product(b, t, t);
  const Value bend = b.fma(square.high, cubic, b.constant(kLinear));
  const Value lost = b.fnma(b.mul(t, square.low), cubic, b.add(e, one));
  const Value ratio = b.div(b.fnma(t, bend, lost), b.fma(e, b.add(e, b.constant(2)), one));
  return mirrored(b, x, scaled(b, b.mul(parts.factor, ratio), parts));
}

/// tanh(log(1 + e)) = n / (n + 2) with e = exp(x) and n = e (e + 2). Numerator and denominator are made 3/4 of that:
/// sums just above a power of two would be rounded most.
Value mish_of(LaneBuilder& b, Value x) {
  const Exponential parts = fine_exponential(b, at_least(b, exp_zero(b), at_most(b, kMishEnd, x)));
  const Value e = scaled(b, parts.factor, parts);
  const Value twice = b.constant(1.5f), above = b.fma(e, b.constant(0.75f), twice);
  const Value ratio = quotient(b, above, b.fma(e, above, twice));
  const Value factor = b.mul(ratio, parts.factor);
  if (!lifts(b)) return scaled(b, factor, parts, x);
  const Value below = at_most(b, kMishEnd, x);
  return b.sub(scaled(b, factor, parts, below), b.sub(below, x));  // this keeps -0, and makes -inf NaN
}

/// e ((e + 2) (n + 2) + 4 x (e + 1)) / (n + 2)^2, both ordered by powers of e so that little cancels, and made 35/64 of
/// that: of several such factors the one with the least error. Product and quotient are rounded once, together: each
/// on its own they would make it 4.1 ulp over all floats.
Value mish_slope_of(LaneBuilder& b, Value x) {
  constexpr float kShare = 35.0f / 64;
  const Value inside = at_least(b, exp_zero(b), at_most(b, kMishEnd, x));
  const Exponential parts = fine_exponential(b, inside);
  const Value e = scaled(b, parts.factor, parts), four = b.constant(4 * kShare);
  const Value eight = b.constant(8 * kShare), e4 = b.fma(e, b.constant(kShare), four);
  const Value below = b.fma(e, b.fma(e, b.fma(e, e4, eight), eight), four);
  const Value first = b.fma(e, e4, b.fma(inside, four, b.constant(6 * kShare)));
  const Value above = b.fma(e, first, b.fma(inside, four, four));
  if (b.precision == Precision::narrow) return scaled(b, quotient(b, b.mul(parts.factor, above), below), parts);
  const Pair whole = product(b, parts.factor, above);
  const Value inverse = b.div(b.constant(1), below), ratio = b.mul(whole.high, inverse);
  const Value rest = b.add(b.fnma(ratio, below, whole.high), whole.low);
  return scaled(b, b.fma(rest, inverse, ratio), parts);
}

}  // namespace partita::jit
