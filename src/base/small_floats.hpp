// SPDX-License-Identifier: Apache-2.0
// Floating-point types of 8 and 16 bits in software. widen_* and narrow_* have no branches, so loops over them
// vectorise; none depends on denormals of f32, which a caller may have switched off.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace partita {

/// A binary format of sign, exponent and mantissa with bias 2^(exponent_bits-1)-1.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  uint32_t largest;   ///< code of the largest finite value
  uint32_t overflow;  ///< code of everything beyond it
  uint32_t nan;
  constexpr int sign_shift() const { return exponent_bits + mantissa_bits; }
  constexpr int least_exponent() const { return 2 - (1 << (exponent_bits - 1)); }
};

inline constexpr SmallFloat kF16{5, 10, 0x7bff, 0x7c00, 0x7e00};
inline constexpr SmallFloat kBf16{8, 7, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr SmallFloat kF8E5M2{5, 2, 0x7b, 0x7c, 0x7e};
inline constexpr SmallFloat kF8E4M3{4, 3, 0x7e, 0x7e, 0x7f};

/// Rounds once, to nearest even, whatever the type.
inline uint32_t encode(const SmallFloat& type, double value) {
  const uint32_t sign = (std::signbit(value) ? 1u : 0u) << type.sign_shift();
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | type.nan;
  if (std::isinf(value)) return sign | type.overflow;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // frexp's fraction is in [1/2, 1); below the least exponent the spacing stays that of the denormals.
  const int lead = magnitude == 0 ? type.least_exponent() : std::max(exponent - 1, type.least_exponent());
  const double quanta = std::nearbyint(std::ldexp(magnitude, type.mantissa_bits - lead));
  if (lead > 1 << (type.exponent_bits - 1)) return sign | type.overflow;
  // The hidden bit, and a carry out of the mantissa, add one to the exponent field by themselves.
  const uint32_t code = (static_cast<uint32_t>(lead - type.least_exponent()) << type.mantissa_bits) +
                        static_cast<uint32_t>(quanta);
  return sign | (code > type.largest ? type.overflow : code);
}

/// By masks, because compilers keep a branch where an operand could raise a floating-point exception.
inline uint32_t pick(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline float widen_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t narrow_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const uint32_t quiet_nan = bits >> 16 | 0x40u;
  return static_cast<uint16_t>(pick((bits & 0x7fffffffu) > 0x7f800000u, quiet_nan, rounded));
}

inline float widen_f16(uint16_t bits) {
  const uint32_t magnitude = (static_cast<uint32_t>(bits) & 0x7fffu) << 13;
  const uint32_t sign = (static_cast<uint32_t>(bits) & 0x8000u) << 16;
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  // A denormal gets the exponent of the least normal, and loses the hidden bit again by a subtraction.
  const float denormal = std::bit_cast<float>(magnitude + kRebias + (1u << 23)) - 0x1p-14f;
  const uint32_t special = magnitude + 2 * kRebias;
  uint32_t out = magnitude + kRebias;
  out = pick(magnitude >= 0x7c00u << 13, special, out);
  out = pick(magnitude < 0x0400u << 13, std::bit_cast<uint32_t>(denormal), out);
  return std::bit_cast<float>(out | sign);
}

inline uint16_t narrow_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  // The spacing of f32 just above 1/2 is that of f16's denormals, so the addition rounds to it.
  const bool is_small = magnitude < 0x38800000u;
  const uint32_t small = pick(is_small, magnitude, 0u);
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(small) + 0.5f) - 0x3f000000u;
  uint32_t out = (magnitude - kRebias + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  out = pick(is_small, denormal, out);
  out = pick(magnitude >= 0x477ff000u, 0x7c00u, out);  // from 65520 on: half way beyond the largest finite value
  out = pick(magnitude > 0x7f800000u, 0x7e00u | (magnitude >> 13 & 0x1ffu), out);
  return static_cast<uint16_t>(out | sign);
}

inline float widen_f8_e4m3(uint8_t bits) {
  const uint32_t magnitude = (static_cast<uint32_t>(bits) & 0x7fu) << 20;
  const uint32_t sign = (static_cast<uint32_t>(bits) & 0x80u) << 24;
  constexpr uint32_t kRebias = (127u - 7u) << 23;
  const float denormal = std::bit_cast<float>(magnitude + kRebias + (1u << 23)) - 0x1p-6f;
  uint32_t out = magnitude + kRebias;
  out = pick(magnitude == 0x7fu << 20, 0x7fc00000u, out);
  out = pick(magnitude < 0x08u << 20, std::bit_cast<uint32_t>(denormal), out);
  return std::bit_cast<float>(out | sign);
}

}  // namespace partita
