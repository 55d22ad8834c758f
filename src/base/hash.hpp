// SPDX-License-Identifier: Apache-2.0
// Hashing of plain values for cache keys.
#pragma once

#include <cstdint>
#include <functional>
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
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace partita
