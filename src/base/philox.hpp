// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random
// numbers as a pure function of a counter and a key, so every element can compute its own.
#pragma once

#include <array>
#include <cstdint>

namespace partita {

/// What each round multiplies by, and adds to the key.
inline constexpr std::array<uint32_t, 2> kPhiloxMultipliers = {0xD2511F53, 0xCD9E8D57};
inline constexpr std::array<uint32_t, 2> kPhiloxWeyl = {0x9E3779B9, 0xBB67AE85};
inline constexpr int kPhiloxRounds = 10;

/// Four random words for a counter under a key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultipliers[0]} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultipliers[1]} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kPhiloxWeyl[0], key[1] + kPhiloxWeyl[1]};
  }
  return counter;
}

/// The four words that Dropout uses for elements 4 * quad .. 4 * quad + 3 (row-major index over the dims).
constexpr std::array<uint32_t, 4> dropout_words(int64_t seed, int64_t offset, int64_t quad) {
  const uint64_t key = static_cast<uint64_t>(seed);
  const uint64_t counter = static_cast<uint64_t>(offset) + static_cast<uint64_t>(quad);
  return philox4x32({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0},
                    {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
}

/// A word as a number in [0, 1) with 24 bits.
constexpr float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace partita
