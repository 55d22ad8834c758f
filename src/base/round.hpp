// SPDX-License-Identifier: Apache-2.0
// Whole numbers rounded up; cache lines.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace partita {

/// Of a cache line, and what addresses and sizes of scratch memory are multiples of. Bytes.
inline constexpr int64_t kCacheLine = 64;

/// n / by, rounded up; neither is negative.
template <std::integral T>
constexpr T ceil_div(T n, std::type_identity_t<T> by) {
  return (n + by - 1) / by;
}

/// The least multiple of `unit` that is not below n >= 0.
template <std::integral T>
constexpr T rounded_up(T n, std::type_identity_t<T> unit) {
  return ceil_div(n, unit) * unit;
}

/// Bytes, filled up to whole cache lines.
template <std::integral T>
constexpr T aligned(T bytes) {
  return rounded_up(bytes, static_cast<T>(kCacheLine));
}

/// Whether a cache line begins at the address.
inline bool is_at_cache_line(const void* p) { return reinterpret_cast<uintptr_t>(p) % kCacheLine == 0; }

}  // namespace partita
