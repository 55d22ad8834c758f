// SPDX-License-Identifier: Apache-2.0
// Element types: sizes and names, and the conversion of single elements.
#include "src/base/dtype.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/check.hpp"
#include "src/base/small_floats.hpp"

namespace partita {
namespace {

template <class T>
T read(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void write(void* data, int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

int read_half_byte(const void* data, int64_t index) {
  const int byte = read<uint8_t>(data, index / 2);
  return index % 2 == 0 ? byte & 0xf : byte >> 4;
}

void write_half_byte(void* data, int64_t index, int value) {
  const int byte = read<uint8_t>(data, index / 2), nibble = value & 0xf;
  const int both = index % 2 == 0 ? (byte & 0xf0) | nibble : (byte & 0x0f) | nibble << 4;
  write(data, index / 2, static_cast<uint8_t>(both));
}

/// Nearest integer in [low, high], ties to even, 0 for NaN.
double saturated(double value, double low, double high) {
  if (std::isnan(value)) return 0;
  return std::nearbyint(value < low ? low : value > high ? high : value);
}

int64_t saturated_s64(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63, the first value beyond the type
  if (std::isnan(value)) return 0;
  if (value >= kLimit) return std::numeric_limits<int64_t>::max();
  if (value < -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::nearbyint(value));
}

template <class T>
void write_saturated(void* data, int64_t index, double value) {
  write(data, index, static_cast<T>(saturated(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
}

}  // namespace

int bits_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::undef: return 0;
    case Dtype::s4:
    case Dtype::u4: return 4;
    case Dtype::s8:
    case Dtype::u8:
    case Dtype::boolean:
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3: return 8;
    case Dtype::f16:
    case Dtype::bf16: return 16;
    case Dtype::f32:
    case Dtype::s32: return 32;
    case Dtype::f64:
    case Dtype::s64: return 64;
  }
  return 0;
}

int element_bytes(Dtype dtype) { return bits_of(dtype) / 8; }

size_t bytes_for(Dtype dtype, int64_t elements) {
  const auto count = static_cast<size_t>(elements);
  const int bits = bits_of(dtype);
  return bits == 4 ? count / 2 + count % 2 : count * static_cast<size_t>(element_bytes(dtype));
}

bool is_floating(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32:
    case Dtype::f64:
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3: return true;
    default: return false;
  }
}

bool is_integer(Dtype dtype) {
  switch (dtype) {
    case Dtype::s4:
    case Dtype::u4:
    case Dtype::s8:
    case Dtype::u8:
    case Dtype::s32:
    case Dtype::s64: return true;
    default: return false;
  }
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (int number = 0; number <= static_cast<int>(Dtype::s64); ++number) {
    const auto dtype = static_cast<Dtype>(number);
    const std::string_view own = name_of(dtype);
    if (own == name && own != "unknown") return dtype;
  }
  return std::nullopt;
}

double load_as_double(const void* data, Dtype dtype, int64_t index) {
  switch (dtype) {
    case Dtype::f16: return f16_to_f32(read<uint16_t>(data, index));
    case Dtype::bf16: return bf16_to_f32(read<uint16_t>(data, index));
    case Dtype::f32: return read<float>(data, index);
    case Dtype::f64: return read<double>(data, index);
    case Dtype::f8_e5m2: return f8_e5m2_to_f32(read<uint8_t>(data, index));
    case Dtype::f8_e4m3: return f8_e4m3_to_f32(read<uint8_t>(data, index));
    case Dtype::boolean: return read<uint8_t>(data, index) != 0 ? 1 : 0;
    case Dtype::s4: return (read_half_byte(data, index) ^ 8) - 8;
    case Dtype::u4: return read_half_byte(data, index);
    case Dtype::s8: return read<int8_t>(data, index);
    case Dtype::u8: return read<uint8_t>(data, index);
    case Dtype::s32: return read<int32_t>(data, index);
    case Dtype::s64: return static_cast<double>(read<int64_t>(data, index));
    case Dtype::undef: break;
  }
  PT_ASSERT(!"a defined data type");
  return 0;
}

void store_from_double(void* data, Dtype dtype, int64_t index, double value) {
  switch (dtype) {
    case Dtype::f16: return write(data, index, static_cast<uint16_t>(encode(kF16, value)));
    case Dtype::bf16: return write(data, index, static_cast<uint16_t>(encode(kBf16, value)));
    case Dtype::f32: return write(data, index, static_cast<float>(value));
    case Dtype::f64: return write(data, index, value);
    case Dtype::f8_e5m2: return write(data, index, static_cast<uint8_t>(encode(kF8E5M2, value)));
    case Dtype::f8_e4m3: return write(data, index, static_cast<uint8_t>(encode(kF8E4M3, value)));
    case Dtype::boolean: return write(data, index, static_cast<uint8_t>(value != 0));
    case Dtype::s4: return write_half_byte(data, index, static_cast<int>(saturated(value, -8, 7)));
    case Dtype::u4: return write_half_byte(data, index, static_cast<int>(saturated(value, 0, 15)));
    case Dtype::s8: return write_saturated<int8_t>(data, index, value);
    case Dtype::u8: return write_saturated<uint8_t>(data, index, value);
    case Dtype::s32: return write_saturated<int32_t>(data, index, value);
    case Dtype::s64: return write(data, index, saturated_s64(value));
    case Dtype::undef: break;
  }
  PT_ASSERT(!"a defined data type");
}

float bf16_to_f32(uint16_t bits) { return widen_bf16(bits); }
uint16_t f32_to_bf16(float value) { return narrow_bf16(value); }
float f16_to_f32(uint16_t bits) { return widen_f16(bits); }
uint16_t f32_to_f16(float value) { return narrow_f16(value); }
float f8_e5m2_to_f32(uint8_t bits) { return widen_f16(static_cast<uint16_t>(bits << 8)); }
uint8_t f32_to_f8_e5m2(float value) { return static_cast<uint8_t>(encode(kF8E5M2, value)); }
float f8_e4m3_to_f32(uint8_t bits) { return widen_f8_e4m3(bits); }
uint8_t f32_to_f8_e4m3(float value) { return static_cast<uint8_t>(encode(kF8E4M3, value)); }

}  // namespace partita
