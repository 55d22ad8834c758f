// SPDX-License-Identifier: Apache-2.0
#include "src/run/arena.hpp"

#include <algorithm>

namespace partita {

/// The smallest block that suffices. Where none does, the largest one makes room for a new one.
ArenaPool::Block ArenaPool::take(size_t bytes) {
  Block too_small;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::lower_bound(kept_, bytes, {}, &Block::bytes);
    if (fits != kept_.end()) {
      const Block block = *fits;
      kept_.erase(fits);
      return block;
    }
    if (kept_.empty()) {
      kept_.reserve(blocks_ + 1);
      ++blocks_;
    } else {
      too_small = kept_.back();
      kept_.pop_back();
    }
  }
  if (too_small.data) memory_.deallocate(too_small.data);
  Block made{memory_.allocate(bytes, kArenaAlignment), bytes};
  if (!made.data) {
    release();
    made.data = memory_.allocate(bytes, kArenaAlignment);
  }
  return made;
}

void ArenaPool::give_back(const Block& block) {
  const std::lock_guard lock(mutex_);
  kept_.insert(std::ranges::upper_bound(kept_, block.bytes, {}, &Block::bytes), block);
}

/// One by one: a list of them would need memory, which is short where this is called.
void ArenaPool::release() {
  for (Block block;; memory_.deallocate(block.data)) {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) return;
    block = kept_.back();
    kept_.pop_back();
    --blocks_;
  }
}

ArenaPool& ArenaPool::standard() {
  static ArenaPool& pool = *new ArenaPool(allocator::standard());  // clients run while the process ends
  return pool;
}

Arena::Arena(const engine& on, size_t bytes) : callers_(on.identity() == 0 ? nullptr : &on.memory()) {
  if (bytes == 0) return;
  block_ = callers_ ? ArenaPool::Block{callers_->allocate(bytes, kArenaAlignment), bytes}
                    : ArenaPool::standard().take(bytes);
}

Arena::Arena(size_t bytes) : callers_(nullptr) {
  if (bytes > 0) block_ = ArenaPool::standard().take(bytes);
}

Arena::~Arena() {
  if (!block_.data) return;
  if (callers_)
    callers_->deallocate(block_.data);
  else
    ArenaPool::standard().give_back(block_);
}

}  // namespace partita
