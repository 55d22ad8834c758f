// SPDX-License-Identifier: Apache-2.0
// Results that leave the caches in whole lines: all of their bytes arrive, and no others change.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/stream_copy.hpp"
#include "src/base/text.hpp"
#include "tests/support/random.hpp"

namespace partita::test {
namespace {

constexpr std::byte kUntouched{0xee};

std::vector<std::byte> random_bytes(Random& random, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.whole(0, 255));
  return bytes;
}

/// Memory that begins at a cache line.
struct Lines {
  explicit Lines(size_t bytes) : memory(bytes + kCacheLine, kUntouched) {
    begin = memory.data() + (kCacheLine - reinterpret_cast<uintptr_t>(memory.data()) % kCacheLine) % kCacheLine;
  }
  std::vector<std::byte> memory;
  std::byte* begin;
};

void expect_only(const Lines& lines, size_t at, const std::vector<std::byte>& bytes, size_t all) {
  for (size_t i = 0; i < all; ++i) {
    const bool inside = i >= at && i < at + bytes.size();
    ASSERT_EQ(lines.begin[i], inside ? bytes[i - at] : kUntouched) << "byte " << i;
  }
}

TEST(jit_stream_copy, copies_what_starts_and_ends_anywhere) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SCOPED_TRACE(str("seed ", seed));
    const auto at = static_cast<size_t>(random.whole(0, 130)), count = static_cast<size_t>(random.whole(0, 700));
    const auto from = random_bytes(random, count);
    Lines to(1024);
    const auto next = random_bytes(random, count);
    jit::stream_copy(to.begin + at, from.data(), count, random.coin() ? next.data() : nullptr);
    jit::end_streaming();
    expect_only(to, at, from, 1024);
    if (HasFatalFailure()) return;
  }
}

TEST(jit_stream_copy, pieces_leave_in_whole_lines) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    SCOPED_TRACE(str("seed ", seed));
    const int64_t most = random.pick<int64_t>({1, 8, 63, 64, 65, 200, 500});
    const auto at = static_cast<size_t>(random.whole(0, 130));
    Lines to(8192), scratch(jit::StagedLines::scratch_bytes(static_cast<size_t>(most)));
    jit::StagedLines staged(scratch.begin, static_cast<size_t>(most));
    std::vector<std::byte> all;
    for (int64_t pieces = random.whole(0, 12); pieces > 0; --pieces) {
      const auto piece = random_bytes(random, static_cast<size_t>(random.whole(1, most)));
      std::byte* const target = to.begin + at + all.size();
      std::memcpy(staged.place(target), piece.data(), piece.size());
      if (random.coin()) {  // some lines of the piece before leave meanwhile
        const jit::StagedLines::Lines lines = staged.lines();
        const int64_t some = random.whole(0, lines.count);
        if (some > 0) std::memcpy(lines.to, lines.from, static_cast<size_t>(some * kCacheLine));
        staged.sent(some);
      }
      staged.written(target, piece.size());
      all.insert(all.end(), piece.begin(), piece.end());
    }
    staged.finish();
    staged.finish();  // there is nothing left
    jit::end_streaming();
    expect_only(to, at, all, 8192);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace partita::test
