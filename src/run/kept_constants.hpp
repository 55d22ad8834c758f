// SPDX-License-Identifier: Apache-2.0
// KeptConstants: the share of the constant cache that belongs to one executable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "partita/engine.hpp"
#include "src/base/function_ref.hpp"

namespace partita {

/// Blocks of memory, one for each set of addresses of the constant inputs. Their sum over the process is at most the
/// capacity of the cache; nothing makes room for a newcomer. Thread-safe.
class KeptConstants {
 public:
  KeptConstants();
  ~KeptConstants();
  KeptConstants(const KeptConstants&) = delete;
  KeptConstants& operator=(const KeptConstants&) = delete;

  class Block;
  /// The block for these addresses: a kept one, or a new one of `bytes` that `fill` has filled. Null where the cache
  /// has no room (or none at all), or `fill` failed: then the execution makes everything itself. A hit takes nothing
  /// from the heap. What was begun before a clear() is given to this execution and not kept.
  std::shared_ptr<const Block> get(std::span<const void* const> addresses, size_t bytes, const allocator& memory,
                                   FunctionRef<Status(std::byte*)> fill);
  /// Forgets all blocks; those in use stay until they are given back.
  void clear();

  static std::byte* data_of(const Block& block);

 private:
  std::shared_ptr<const Block> found(std::span<const void* const> addresses) const;
  uint64_t clears() const;

  mutable std::shared_mutex mutex_;
  std::mutex making_;
  uint64_t clears_ = 0;
  std::vector<std::shared_ptr<const Block>> blocks_;
};

}  // namespace partita
