// SPDX-License-Identifier: Apache-2.0
// Fetching: how what will be read soon is brought into the caches.
#pragma once

#include <cstdint>

#include "src/base/cpu.hpp"

namespace partita::jit {

/// What one core has on its way from memory at full speed; a stream of loads alone keeps less in flight.
inline constexpr int kPrefetchFromMemory = 3072;

struct Fetching {
  enum class How : uint8_t {
    none,
    near,  ///< into the nearest cache
    /// Into the second-level cache: helps processors that read streams by themselves, whose loads are held up by lines
    /// that are fetched into the nearest one.
    second_level,
    /// From four pages in turns: one stream of reads leaves much of a core's bandwidth unused where the processor
    /// fetches only so far ahead in each page. Not for many streams at once.
    in_turns,
  };

  static constexpr Fetching near(int ahead = kPrefetchFromMemory) { return {How::near, ahead}; }
  static constexpr Fetching second_level(int ahead = 4096) { return {How::second_level, ahead}; }
  static constexpr Fetching in_turns(int least = 0) { return {How::in_turns, least}; }
  /// What suits the processor, of few streams and of many.
  static Fetching of_few_streams() { return reads_streams_alone() ? second_level() : in_turns(); }
  static Fetching of_many_streams() { return reads_streams_alone() ? second_level() : near(); }

  explicit operator bool() const { return how != How::none; }

  How how = How::none;
  int ahead = 0;  ///< bytes; in turns: at the least
};

}  // namespace partita::jit
