// SPDX-License-Identifier: Apache-2.0
// Rounding of f32 lanes to other types and back, to the bit as src/base does it, also where the caller has switched
// denormals of f32 off; but AVX512_BF16 makes zeros of f32 denormals.
#include <bit>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/code/predicates.hpp"
#include "src/base/check.hpp"
#include "src/base/small_floats.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr int32_t kMagnitude = INT32_MAX, kSign = INT32_MIN;
constexpr int32_t kInfinity = 0x7f800000;
constexpr int kF32Mantissa = 23, kF32Bias = 127;
constexpr float kTwo31 = 2147483648.0f;

int32_t bits(float value) { return std::bit_cast<int32_t>(value); }

/// Two to the power of `exponent`.
int32_t power_bits(int exponent) { return (exponent + kF32Bias) << kF32Mantissa; }

const SmallFloat& format_of(Dtype dtype) { return dtype == Dtype::f8_e5m2 ? kF8E5M2 : kF8E4M3; }

/// What an f32 with a small format's exponent and mantissa in place lacks in its exponent.
int32_t rebias(const SmallFloat& f) { return (kF32Bias - 1 + f.least_exponent()) << kF32Mantissa; }

struct Limits {
  float low, high;
};

Limits limits_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::s8: return {-128, 127};
    case Dtype::s4: return {-8, 7};
    case Dtype::u4: return {0, 15};
    default: return {0, 255};
  }
}

}  // namespace

bool Emitter::casts(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::s4:
    case Dtype::u4: return true;
    default: return loads(dtype);
  }
}

void Emitter::cast(Xmm dst, Xmm a, Dtype dtype) {
  if (dst != a) vmovaps(dst, a);
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64: return;
    case Dtype::bf16:
      if (converts_bf16_ && !keeps_denormals_) {
        vcvtneps2bf16(half(dst), dst);
        vpmovzxwd(dst, half(dst));
        return vpslld(dst, dst, 16);
      }
      round_to_bf16(dst);
      return vandps(dst, dst, everywhere(-1 << 16));
    case Dtype::f16: vcvtps2ph(half(scratch(0)), dst, 0); return vcvtph2ps(dst, half(scratch(0)));
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3: narrow_f8(dst, dtype); return widen_f8(dst, dtype);
    case Dtype::s32: to_s32(dst); return vcvtdq2ps(dst, dst);
    case Dtype::boolean: is_not_zero(dst); return vandps(dst, dst, everywhere(bits(1)));
    default: to_integer(dst, dtype); return vcvtdq2ps(dst, dst);
  }
}

/// v = v rounded to nearest even in its upper 16 bits, anything in the lower ones; NaN stays NaN. Uses scratch 0 and 1.
/// For processors without AVX512_BF16, whose one instruction for it takes denormals for zeros.
void Emitter::round_to_bf16(Xmm v) {
  const Xmm sum = scratch(0);
  if (wide_) {
    vpsrld(sum, v, 16);
    vandps(sum, sum, everywhere(1));
    vpaddd(sum, sum, v);
    vpaddd(sum, sum, everywhere(0x7fff));
    vcmpps(k2, v, v, kUnordered);
    vorps(sum | k2, v, everywhere(0x00400000));
    return vmovaps(v, sum);
  }
  // Shifts would take turns with the shuffles around them: -1 where the upper half is even.
  vandnps(sum, v, everywhere(1 << 16));
  vpcmpeqd(sum, sum, everywhere(1 << 16));
  vpaddd(sum, sum, v);
  vpaddd(sum, sum, everywhere(1 << 15));
  const Xmm nan = scratch(1);
  vcmpps(nan, v, v, kUnordered);
  vorps(v, v, everywhere(0x00400000));
  vblendvps(v, sum, v, nan);
}

/// v = code of v in the low byte, the rest 0. Uses scratch 0, 1 and 3.
void Emitter::narrow_f8(Xmm v, Dtype dtype) {
  const SmallFloat& f = format_of(dtype);
  const int dropped = kF32Mantissa - f.mantissa_bits;
  const Xmm size = scratch(0), code = scratch(1), other = scratch(3);
  vandps(size, v, everywhere(kMagnitude));
  vpsrld(code, size, static_cast<uint8_t>(dropped));
  vandps(code, code, everywhere(1));
  vpaddd(code, code, size);
  vpaddd(code, code, everywhere((1 << (dropped - 1)) - 1 - rebias(f)));
  vpsrad(code, code, static_cast<uint8_t>(dropped));
  vpminsd(code, code, everywhere(static_cast<int32_t>(f.overflow)));
  // Denormals: a sum with a number whose last place is theirs. The least normal number comes out as itself, and
  // nothing below it exceeds its code, so the larger code is the right one.
  const int32_t spacing = power_bits(f.least_exponent() - f.mantissa_bits + kF32Mantissa);
  vpminsd(other, size, everywhere(power_bits(f.least_exponent())));
  vaddps(other, other, everywhere(spacing));
  vpsubd(other, other, everywhere(spacing));
  vpmaxsd(code, code, other);
  const auto nan = static_cast<int32_t>(f.nan);  // has every bit that the code of an overflow has
  if (wide_) {
    vpcmpd(k2, size, everywhere(kInfinity), 6);  // greater
    vorps(code | k2, code, everywhere(nan));
  } else {
    vpcmpgtd(other, size, everywhere(kInfinity));
    vandps(other, other, everywhere(nan));
    vorps(code, code, other);
  }
  vandps(v, v, everywhere(kSign));
  vpsrld(v, v, 24);
  vorps(v, v, code);
}

/// v = f32 of the codes in the low bytes. Uses scratch 0, 1 and 3.
void Emitter::widen_f8(Xmm v, Dtype dtype) {
  const SmallFloat& f = format_of(dtype);
  const int to_place = kF32Mantissa - f.mantissa_bits;
  const Xmm sign = scratch(0), other = scratch(1);
  vpslld(sign, v, 24);
  vandps(sign, sign, everywhere(kSign));
  vpslld(v, v, 25);
  vpsrld(v, v, static_cast<uint8_t>(25 - to_place));
  vpaddd(v, v, everywhere(rebias(f)));
  // Infinity and NaN: codes above the largest have bits enough that only the exponent is missing.
  const auto largest = static_cast<int32_t>((f.largest << to_place) + static_cast<uint32_t>(rebias(f)));
  const int32_t special = dtype == Dtype::f8_e5m2 ? kInfinity : kInfinity | 0x00400000;
  if (wide_) {
    vpcmpd(k2, v, everywhere(largest), 6);  // greater
  } else {
    vpcmpgtd(scratch(3), v, everywhere(largest));
    vandps(scratch(3), scratch(3), everywhere(special));
  }
  // A denormal x came out as (x + least) / 2; of every larger number the double less the least exceeds it.
  vaddps(other, v, v);
  vsubps(other, other, everywhere(power_bits(f.least_exponent())));
  vminps(v, v, other);
  wide_ ? vorps(v | k2, v, everywhere(special)) : vorps(v, v, scratch(3));
  vorps(v, v, sign);
}

/// v = s32 of v limited to the type's range; NaN gives 0. Uses scratch 0.
void Emitter::to_integer(Xmm v, Dtype dtype) {
  if (wide_) {
    vcmpps(k2, v, v, kOrdered);
    vmovaps(v | k2 | T_z, v);
  } else {
    vcmpps(scratch(0), v, v, kOrdered);
    vandps(v, v, scratch(0));
  }
  const Limits limits = limits_of(dtype);
  vmaxps(v, v, everywhere(bits(limits.low)));
  vminps(v, v, everywhere(bits(limits.high)));
  vcvtps2dq(v, v);
}

/// v = s32 of v, saturated; NaN gives 0. Uses scratch 0 and 1.
void Emitter::to_s32(Xmm v) {
  const Xmm whole = scratch(0), other = scratch(1);
  vcvtps2dq(whole, v);
  if (wide_) {
    vcmpps(k2, v, everywhere(bits(kTwo31)), kGreaterEqual);
    broadcast_bits(other, INT32_MAX);
    vmovaps(whole | k2, other);
    vcmpps(k2, v, v, kOrdered);
    return vmovaps(v | k2 | T_z, whole);
  }
  // Too large gave 0x80000000; all ones where too large turn it into 0x7fffffff.
  vcmpps(other, v, everywhere(bits(kTwo31)), kGreaterEqual);
  vxorps(whole, whole, other);
  vcmpps(v, v, v, kOrdered);
  vandps(v, v, whole);
}

/// v = all ones where v is not 0 (NaN is not). Uses scratch 0.
void Emitter::is_not_zero(Xmm v) {
  vxorps(scratch(0), scratch(0), scratch(0));
  compare(v, v, scratch(0), kNotEqual);
}

}  // namespace partita::jit
