// SPDX-License-Identifier: Apache-2.0
// Results that were put together in the caches, on their way to memory: stream_copy at once, StagedLines piece by
// piece.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/round.hpp"

namespace partita::jit {

/// Copies; whole cache lines go past the caches, so that they need not be read first. For results whose rows start
/// anywhere, where kernels cannot stream themselves.
/// The caller ends with end_streaming().
/// As many bytes at `next` are fetched into the second-level cache meanwhile; null: none.
void stream_copy(std::byte* to, const std::byte* from, size_t bytes, const std::byte* next = nullptr);

/// Copies through the caches, vector by vector: what another core has written is fetched many lines at once, which the
/// string instructions that memcpy takes for long runs do not do.
void cached_copy(std::byte* to, const std::byte* from, size_t bytes);

/// One thread's results that follow each other in memory, made piece by piece. A piece leaves while the next one
/// is made, or behind it, so that nothing waits for what has just been stored, and memory has a piece's time to take
/// it. The caller ends with end_streaming().
class StagedLines {
 public:
  /// Of scratch memory that begins at a cache line, for pieces of up to `most` bytes.
  static size_t scratch_bytes(size_t most) { return 2 * bytes_of_one(most); }
  StagedLines() = default;
  StagedLines(std::byte* scratch, size_t most);

  /// Where to make the piece that belongs to `to`, from its first byte on; bytes before it are not to be changed. Where
  /// it does not follow the one before, that one leaves first.
  std::byte* place(const std::byte* to);
  /// Whole lines of the piece before. The first ones may leave while this one is made: `sent` says how many have.
  struct Lines {
    const std::byte* from;
    std::byte* to;
    int64_t count;
  };
  Lines lines() const;
  void sent(int64_t lines) { staged_.sent = static_cast<size_t>(lines); }
  /// It is made; `to` is where the one before ended.
  void written(std::byte* to, size_t bytes);
  /// There are no more: everything leaves.
  void finish();

 private:
  static size_t bytes_of_one(size_t most) { return aligned(most + kCacheLine); }
  size_t send();

  /// A piece, from the cache line on that it begins in, of which the bytes from `known_from` on are known, and the
  /// first lines have been `sent`.
  struct Piece {
    std::byte* to = nullptr;
    size_t end = 0, known_from = 0, sent = 0;
  };

  std::array<std::byte*, 2> buffers_{};
  size_t buffer_ = 0;  // of the piece that is made
  Piece staged_;       // in the other one
};

}  // namespace partita::jit
