// SPDX-License-Identifier: Apache-2.0
// Memory for the time of one execution, and what is kept of it for the next ones.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "partita/engine.hpp"

namespace partita {

/// Kernels store whole vectors into it.
inline constexpr size_t kArenaAlignment = 64;

/// Memory that executions gave back. New memory costs the system a page fault every 4 KiB, up to a third of an
/// execution, so it is kept: never more blocks than were in use at once, each of the size of a demand. Thread-safe.
class ArenaPool {
 public:
  explicit ArenaPool(allocator memory) : memory_(std::move(memory)) {}
  ~ArenaPool() { release(); }
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  struct Block {
    void* data = nullptr;  ///< null where there is no memory
    size_t bytes = 0;      ///< at least what was asked for
  };
  Block take(size_t bytes);
  void give_back(const Block& block);
  /// Gives what is not in use to the allocator.
  void release();

  /// Of all engines with the standard allocator.
  static ArenaPool& standard();

 private:
  allocator memory_;
  std::mutex mutex_;
  std::vector<Block> kept_;  // the smallest first; has room for all blocks, so that giving one back cannot fail
  size_t blocks_ = 0;        // at most so many are out or kept
};

/// From the pool where the engine has the standard allocator; from an allocator of the caller's in every execution.
class Arena {
 public:
  /// The engine must outlive it.
  Arena(const engine& on, size_t bytes);
  /// Of any engine with the standard allocator.
  explicit Arena(size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Null where nothing was asked for, or there is no memory.
  void* data() const { return block_.data; }

 private:
  const allocator* callers_;  ///< null: the standard one
  ArenaPool::Block block_;
};

}  // namespace partita
