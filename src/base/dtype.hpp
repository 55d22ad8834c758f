// SPDX-License-Identifier: Apache-2.0
// Element types: sizes, ranges, and conversion of single elements to and from f32/f64 with round-to-nearest-even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "partita/types.hpp"

namespace partita {

/// Bits of one element; 4 for s4 and u4; 0 for undef.
int bits_of(Dtype dtype);
/// Bytes of one element; 0 for s4 and u4, of which two share a byte (see bits_of and bytes_for), and for undef.
int element_bytes(Dtype dtype);
/// Bytes that hold `elements` elements.
size_t bytes_for(Dtype dtype, int64_t elements);
bool is_floating(Dtype dtype);
bool is_integer(Dtype dtype);  ///< s4 u4 s8 u8 s32 s64, not boolean
std::optional<Dtype> dtype_named(std::string_view name);

/// Element `index` of packed data as a number; exact for every type (s64 beyond 2^53 is rounded).
double load_as_double(const void* data, Dtype dtype, int64_t index);
/// Rounds to nearest even; integers saturate, NaN becomes 0 in an integer; boolean stores 1 for anything but 0.
/// s4/u4 stores rewrite one half of a byte: not safe for neighbours from several threads.
void store_from_double(void* data, Dtype dtype, int64_t index, double value);

float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float f8_e5m2_to_f32(uint8_t bits);
uint8_t f32_to_f8_e5m2(float value);  ///< overflow gives infinity
float f8_e4m3_to_f32(uint8_t bits);
uint8_t f32_to_f8_e4m3(float value);  ///< no infinity in the type: overflow gives the largest finite value

/// Converts `n` elements starting at element `at`, densely packed.
void load_floats(const void* data, Dtype dtype, int64_t at, int64_t n, float* to);
void store_floats(void* data, Dtype dtype, int64_t at, int64_t n, const float* from);

}  // namespace partita
