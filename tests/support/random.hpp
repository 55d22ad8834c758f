// SPDX-License-Identifier: Apache-2.0
// Random: the numbers that random tests and fuzz targets decide by.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <random>
#include <span>

namespace partita::test {

/// What PARTITA_TEST_SEED adds to every seed; 0 where it is not set.
inline uint64_t seed_shift() {
  const char* text = std::getenv("PARTITA_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 0) : 0;
}

/// Numbers from a seed, which is part of every failure message, or from the bytes of a fuzzer.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed), engine_(seed + seed_shift()) {}
  /// Whole numbers are read from the bytes as long as there are some, so that changing a byte changes one decision.
  /// Two bytes are the seed of everything else. The bytes must outlive this.
  explicit Random(std::span<const uint8_t> bytes) : bytes_(bytes) {
    seed_ = read(2);
    engine_.seed(seed_);
  }
  /// As it was given: with the same PARTITA_TEST_SEED it gives the same numbers.
  uint64_t seed() const { return seed_; }
  int64_t whole(int64_t low, int64_t high) {
    if (bytes_.empty()) return std::uniform_int_distribution<int64_t>(low, high)(engine_);
    const auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    size_t width = 0;
    while (width < sizeof range && range >> 8 * width != 0) ++width;
    const uint64_t number = read(width);
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (range + 1 == 0 ? number : number % (range + 1)));
  }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  bool coin() { return whole(0, 1) == 1; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[whole(0, static_cast<int64_t>(choices.size()) - 1)];
  }
  /// An element of a vector or an array.
  template <class List>
  const auto& one_of(const List& list) {
    return std::data(list)[whole(0, static_cast<int64_t>(std::size(list)) - 1)];
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  /// The next bytes as a number, the first as its lowest; missing ones are 0.
  uint64_t read(size_t width) {
    uint64_t number = 0;
    const size_t there = std::min(width, bytes_.size());
    for (size_t i = 0; i < there; ++i) number |= uint64_t{bytes_[i]} << 8 * i;
    bytes_ = bytes_.subspan(there);
    return number;
  }

  uint64_t seed_ = 0;
  std::span<const uint8_t> bytes_;
  std::mt19937_64 engine_;
};

}  // namespace partita::test
