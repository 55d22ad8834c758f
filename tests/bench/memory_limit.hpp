// SPDX-License-Identifier: Apache-2.0
// The speed of memory itself: reads and non-temporal writes of given amounts, with nothing computed between them.
#pragma once

#include <cstddef>

#include "tests/bench/memory.hpp"

namespace partita::bench {

/// Reads `read` bytes while it writes `written` ones, mixed as a kernel with that traffic would, shared by `threads`
/// threads. Uses the widest vectors that PARTITA_MAX_ISA allows; plain stores where the processor is no x86-64.
class MemoryLimit {
 public:
  MemoryLimit(size_t read, size_t written, int threads);
  void run() const;

 private:
  int threads_;
  size_t lines_of_stream_, lines_written_;
  Memory from_, to_;
};

/// Reads twice the last-level cache once, so that little of any other buffer is left in it.
class CacheEviction {
 public:
  explicit CacheEviction(int threads);
  void run() const { walk_.run(); }

 private:
  MemoryLimit walk_;
};

}  // namespace partita::bench
