// SPDX-License-Identifier: Apache-2.0
// Fetching: how what will be read soon is brought into the caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/cpu.hpp"
#include "src/base/round.hpp"

namespace partita::jit {

/// What one core has on its way from memory at full speed; a stream of loads alone keeps less in flight.
inline constexpr int kPrefetchFromMemory = 3072;

/// How many bytes ahead to fetch of rows of a tensor of which several are read side by side, then the next ones `step`
/// bytes behind them: what follows the end of all but the last one has been read already. So the same places of the
/// next rows, unless these do not stay in the caches until then.
constexpr int ahead_in_rows(int64_t step) {
  constexpr int64_t kStay = 64 << 10;
  if (step <= 0) return kPrefetchFromMemory;
  const int64_t rows = rounded_up(int64_t{kPrefetchFromMemory}, step);
  return rows <= kStay ? static_cast<int>(rows) : kPrefetchFromMemory;
}

struct Fetching {
  static constexpr int kFewStreams = 4096;  ///< bytes ahead of a stream that is one of few
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
  static constexpr Fetching second_level(int ahead = kFewStreams) { return {How::second_level, ahead}; }
  static constexpr Fetching in_turns(int least = 0) { return {How::in_turns, least}; }
  /// What suits the processor, of few streams and of many.
  static Fetching of_few_streams(int least = 0) {
    return reads_streams_alone() ? second_level(std::max(kFewStreams, least)) : in_turns();
  }
  static Fetching of_many_streams(int least = kPrefetchFromMemory) {
    return reads_streams_alone() ? second_level(std::max(kFewStreams, least)) : near(least);
  }

  explicit operator bool() const { return how != How::none; }

  How how = How::none;
  int ahead = 0;  ///< bytes; in turns: at the least
};

}  // namespace partita::jit
