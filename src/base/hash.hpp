// SPDX-License-Identifier: Apache-2.0
// Hashing of plain values for cache keys.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace partita {

/// Mixes values one after another (the 64-bit finalizer of MurmurHash3 as the mixing step).
class Hasher {
 public:
  Hasher& add(uint64_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ull;
    state_ ^= state_ >> 33;
    state_ *= 0xff51afd7ed558ccdull;
    state_ ^= state_ >> 33;
    state_ *= 0xc4ceb9fe1a85ec53ull;
    state_ ^= state_ >> 33;
    return *this;
  }
  Hasher& add(std::string_view text) { return add(std::hash<std::string_view>{}(text)); }
  /// A list is folded first: mixing costs ten times as much as a multiplication.
  Hasher& add(std::span<const int64_t> list) {
    uint64_t folded = list.size();
    for (int64_t number : list) folded = folded * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(number);
    return add(folded);
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace partita
