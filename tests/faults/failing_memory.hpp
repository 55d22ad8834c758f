// SPDX-License-Identifier: Apache-2.0
// Memory that fails when a test says so. The program's malloc and its relatives are replaced, for all libraries in it,
// and operator new with them; so are mmap and mprotect, which machine code is made with.
#pragma once

#include <cstdint>

namespace partita::test {

/// Blocks of the heap that are in use, and their bytes. OpenMP's runtime and what the loader takes do not count.
struct Heap {
  int64_t blocks = 0, bytes = 0;
  friend bool operator==(const Heap&, const Heap&) = default;
};
Heap heap();

/// While it lives, the nth request of any thread (counted from 1) fails, and with `stays` every one after it. Requests
/// of OpenMP's runtime always succeed: it ends the process where they do not.
class FailingMemory {
 public:
  explicit FailingMemory(int64_t nth, bool stays = false);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  /// Whether the nth request has come.
  bool happened() const;
};

/// While it lives, the system gives no memory for code: neither mapped (mmap) nor made executable (mprotect).
class NoCodeMemory {
 public:
  enum class How : uint8_t {
    no_pages,         ///< mmap fails
    no_execution,     ///< mprotect does not make pages executable
    no_both_at_once,  ///< pages are never writable and executable at once
  };
  explicit NoCodeMemory(How how);
  ~NoCodeMemory();
  NoCodeMemory(const NoCodeMemory&) = delete;
  NoCodeMemory& operator=(const NoCodeMemory&) = delete;
};

/// Pages that were mapped (by calls of mmap from libraries, not by malloc) and not unmapped.
int64_t mapped_bytes();

}  // namespace partita::test
