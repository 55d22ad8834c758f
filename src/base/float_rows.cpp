// SPDX-License-Identifier: Apache-2.0
// load_floats and store_floats: rows of elements to and from f32, in loops the compiler can vectorise.
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/small_floats.hpp"

namespace partita {
namespace {

template <class T, class Convert>
void load_row(const void* data, int64_t at, int64_t n, float* to, Convert convert) {
  const T* from = static_cast<const T*>(data) + at;
  for (int64_t i = 0; i < n; ++i) to[i] = convert(from[i]);
}

/// What a byte of two elements holds, the one with the even index in the low half.
using Halves = std::array<std::array<float, 2>, 256>;

template <class Convert>
constexpr Halves halves_of(Convert convert) {
  Halves table{};
  for (size_t byte = 0; byte < table.size(); ++byte)
    table[byte] = {static_cast<float>(convert(static_cast<int>(byte & 15))),
                   static_cast<float>(convert(static_cast<int>(byte >> 4)))};
  return table;
}
constexpr Halves kUnsignedHalves = halves_of([](int v) { return v; });
constexpr Halves kSignedHalves = halves_of([](int v) { return (v ^ 8) - 8; });

void load_halves(const void* data, int64_t at, int64_t n, float* to, const Halves& halves) {
  const uint8_t* from = static_cast<const uint8_t*>(data) + at / 2;
  if (n > 0 && at % 2 != 0) {
    *to++ = halves[*from++][1];
    --n;
  }
  for (int64_t i = 0; i < n / 2; ++i) std::memcpy(to + 2 * i, halves[from[i]].data(), 2 * sizeof(float));
  if (n > 0 && n % 2 != 0) to[n - 1] = halves[from[n / 2]][0];
}

template <class T, class Convert>
void store_row(void* data, int64_t at, int64_t n, const float* from, Convert convert) {
  T* to = static_cast<T*>(data) + at;
  for (int64_t i = 0; i < n; ++i) to[i] = convert(from[i]);
}

/// `value` in [low, high], NaN as 0.
inline float clamped(float value, float low, float high) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits = pick(value < low, std::bit_cast<uint32_t>(low), bits);
  bits = pick(value > high, std::bit_cast<uint32_t>(high), bits);
  return std::bit_cast<float>(pick(value != value, 0u, bits));
}

/// Rounds to nearest even by adding 1.5 * 2^23, whose spacing is one; the integer is in the low bits of the sum.
template <class T>
T to_byte(float value) {
  constexpr float kRound = 12582912.0f;
  const float v = clamped(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  return static_cast<T>(std::bit_cast<uint32_t>(v + kRound));
}

/// Rounds by adding +-2^23, beyond which every f32 is an integer.
int32_t to_s32(float value) {
  constexpr uint32_t kSign = 0x80000000u, kWhole = 0x4b000000u;
  constexpr float kBelowLimit = 2147483520.0f;  // the largest f32 that fits
  const float v = clamped(value, -2147483648.0f, kBelowLimit);
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const float whole = std::bit_cast<float>(kWhole | (bits & kSign));
  const float rounded = (v + whole) - whole;
  const float chosen = std::bit_cast<float>(pick((bits & ~kSign) < kWhole, std::bit_cast<uint32_t>(rounded), bits));
  const auto number = static_cast<uint32_t>(static_cast<int32_t>(chosen));
  return static_cast<int32_t>(pick(value > kBelowLimit, 0x7fffffffu, number));
}

}  // namespace

void load_floats(const void* data, Dtype dtype, int64_t at, int64_t n, float* to) {
  switch (dtype) {
    case Dtype::f32:
      if (n > 0) std::memcpy(to, static_cast<const float*>(data) + at, static_cast<size_t>(n) * sizeof(float));
      return;
    case Dtype::bf16: return load_row<uint16_t>(data, at, n, to, [](uint16_t b) { return widen_bf16(b); });
    case Dtype::f16: return load_row<uint16_t>(data, at, n, to, [](uint16_t b) { return widen_f16(b); });
    case Dtype::f8_e5m2:
      return load_row<uint8_t>(data, at, n, to, [](uint8_t b) { return widen_f16(static_cast<uint16_t>(b << 8)); });
    case Dtype::f8_e4m3: return load_row<uint8_t>(data, at, n, to, [](uint8_t b) { return widen_f8_e4m3(b); });
    case Dtype::s8: return load_row<int8_t>(data, at, n, to, [](int8_t v) { return static_cast<float>(v); });
    case Dtype::u8: return load_row<uint8_t>(data, at, n, to, [](uint8_t v) { return static_cast<float>(v); });
    case Dtype::s32: return load_row<int32_t>(data, at, n, to, [](int32_t v) { return static_cast<float>(v); });
    case Dtype::s4: return load_halves(data, at, n, to, kSignedHalves);
    case Dtype::u4: return load_halves(data, at, n, to, kUnsignedHalves);
    default:
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(load_as_double(data, dtype, at + i));
  }
}

void store_floats(void* data, Dtype dtype, int64_t at, int64_t n, const float* from) {
  switch (dtype) {
    case Dtype::f32:
      if (n > 0) std::memcpy(static_cast<float*>(data) + at, from, static_cast<size_t>(n) * sizeof(float));
      return;
    case Dtype::bf16: return store_row<uint16_t>(data, at, n, from, [](float v) { return narrow_bf16(v); });
    case Dtype::f16: return store_row<uint16_t>(data, at, n, from, [](float v) { return narrow_f16(v); });
    case Dtype::s8: return store_row<int8_t>(data, at, n, from, [](float v) { return to_byte<int8_t>(v); });
    case Dtype::u8: return store_row<uint8_t>(data, at, n, from, [](float v) { return to_byte<uint8_t>(v); });
    case Dtype::s32: return store_row<int32_t>(data, at, n, from, [](float v) { return to_s32(v); });
    default:
      for (int64_t i = 0; i < n; ++i) store_from_double(data, dtype, at + i, from[i]);
  }
}

}  // namespace partita
