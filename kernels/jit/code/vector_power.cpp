// SPDX-License-Identifier: Apache-2.0
// Powers as lane operations: the logarithm to base 2 as a sum of two f32, times the exponent, then the exponential.
#include <cmath>
#include <limits>

#include "kernels/jit/code/vector_parts.hpp"

namespace partita::jit {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr int32_t kInfinity = 0x7f800000;
/// 2 / ln 2 as a sum of two numbers.
constexpr float kScale = 0x1.715476p+1f, kScaleRest = 0x1.4ae0cp-25f;
/// (artanh(z) / z - 1) / z^2 in z^2 for |z| up to (sqrt(2) - 1) / (sqrt(2) + 1); error of artanh(z) / z 2.5e-11.
constexpr float kArtanh[] = {0.333333313f, 0.200004861f, 0.142493933f, 0.121396273f};

/// high is the f32 nearest to the sum.
struct Pair {
  Value high, low;
};

/// Needs |a| >= |b| or a = 0.
Pair sum(LaneBuilder& b, Value large, Value small) {
  const Value high = b.add(large, small);
  return {high, b.sub(small, b.sub(high, large))};
}

/// log2(2^k m) = k + 2 artanh((m - 1) / (m + 1)) / ln 2 of a positive number, with m between the roots of 1/2 and 2.
Pair log2_of(LaneBuilder& b, Value size) {
  constexpr float kSmallestNormal = 0x1p-126f, kNormalize = 0x1p24f;
  const Value denormal = b.op(LaneOp::gt, b.constant(kSmallestNormal), size);
  const Value normal = b.select(denormal, b.mul(size, b.constant(kNormalize)), size);
  const Value root_half = b.constant(0x1.6a09e6p-1f);
  const Value exponent = b.op(LaneOp::and_, b.op(LaneOp::isub, normal, root_half), b.bits(-1 << kMantissaBits));
  const Value m = b.op(LaneOp::isub, normal, exponent);
  const Value whole = b.op(LaneOp::to_float, b.op(LaneOp::sra, exponent, 0, 0, kMantissaBits));
  const Value k = b.sub(whole, b.op(LaneOp::and_, denormal, b.constant(24)));

  const Value one = b.constant(1);
  const Value f = b.sub(m, one), below = b.add(m, one), below_rest = b.sub(m, b.sub(below, one));
  const Value inverse = b.div(one, below), z = b.mul(f, inverse);
  const Value z_rest = b.mul(b.fnma(z, below_rest, b.fnma(z, below, f)), inverse);
  const Value square = b.mul(z, z);
  const Value tail = b.fma(z, b.mul(square, polynomial(b, square, kArtanh)), z_rest);

  const Value scale = b.constant(kScale), high = b.mul(z, scale);
  const Value lost = b.fma(z, scale, b.op(LaneOp::xor_, high, b.bits(kSign)));
  const Value low = b.fma(tail, scale, b.fma(z, b.constant(kScaleRest), lost));
  const Pair rough = sum(b, k, high);
  return sum(b, rough.high, b.add(rough.low, low));
}

/// Two to the power of high + low, whatever high is; low counts where high is moderate.
Value exp2_of(LaneBuilder& b, const Pair& x) {
  constexpr float kLowest = -160, kHighest = 140, kModerate = 1000;
  const Value moderate = b.op(LaneOp::gt, b.constant(kModerate), b.op(LaneOp::and_, x.high, b.bits(INT32_MAX)));
  const Value high = at_least(b, kLowest, at_most(b, kHighest, x.high));
  const Value low = b.op(LaneOp::and_, moderate, x.low);
  if (b.wide) {
    const Value whole = b.constant(kBiasedWhole), k = b.sub(b.add(high, whole), whole);
    const Value r = b.mul(b.add(b.sub(high, k), low), b.constant(kLn2));
    return b.op(LaneOp::scale, exp_of_rest(b, r), k);
  }
  const Value biased = b.fma(high, b.constant(0.5f), b.constant(kBiasedWhole));
  const Value k = b.sub(biased, b.constant(kBiasedWhole));
  const Value rest = b.add(b.fnma(k, b.constant(2), high), low);
  const Value factor = exp_of_rest(b, b.mul(rest, b.constant(kLn2)));
  const Value power = b.op(LaneOp::shl, biased, 0, 0, kMantissaBits);
  return scaled(b, factor, {factor, power, power});
}

Value is_whole(LaneBuilder& b, Value x) { return b.op(LaneOp::eq, b.op(LaneOp::floor, x), x); }

}  // namespace

Value pow_of(LaneBuilder& b, Value x, Value y) {
  const Value size = b.op(LaneOp::and_, x, b.bits(INT32_MAX)), infinity = b.bits(kInfinity);
  const Pair finite = log2_of(b, size);
  const Value log_large = b.select(b.op(LaneOp::gt, infinity, size), finite.high, size);
  const Value log = b.select(b.op(LaneOp::eq, x, b.constant(0)), b.bits(kSign | kInfinity), log_large);
  // An infinite exponent acts as the largest one, and the logarithm of 1 makes it 0.
  const Value exponent = at_least(b, -kLargest, at_most(b, kLargest, y));
  const Value high = b.mul(exponent, log);
  const Value lost = b.fma(exponent, log, b.op(LaneOp::xor_, high, b.bits(kSign)));
  const Value power = exp2_of(b, {high, b.fma(exponent, finite.low, lost)});

  const Value whole = is_whole(b, y);
  const Value odd = b.op(LaneOp::andnot, is_whole(b, b.mul(y, b.constant(0.5f))), whole);
  const Value sign = b.op(LaneOp::and_, b.op(LaneOp::and_, x, odd), b.bits(kSign));
  const Value negative =
      b.op(LaneOp::and_, b.op(LaneOp::gt, b.constant(0), x), b.op(LaneOp::gt, x, b.bits(kSign | kInfinity)));
  const Value undefined = b.op(LaneOp::andnot, whole, negative);  // all bits set is a NaN
  const Value result = b.op(LaneOp::or_, b.op(LaneOp::or_, power, sign), undefined);
  const Value always_one = b.op(LaneOp::or_, b.op(LaneOp::eq, x, b.constant(1)), b.op(LaneOp::eq, y, b.constant(0)));
  return b.select(always_one, b.constant(1), result);
}

}  // namespace partita::jit
