// SPDX-License-Identifier: Apache-2.0
// ThreadScratch: the scratch memory of a kernel, with a share for each of the threads that run at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace partita {

/// Between shares lie lines that nobody uses: processors fetch some lines ahead of what a thread reads, and would take
/// them from the thread that writes them.
class ThreadScratch {
 public:
  ThreadScratch() = default;
  /// Shares of `bytes` bytes, aligned like the whole, at the most to a cache line.
  ThreadScratch(int64_t threads, int64_t bytes)
      : threads_(threads), each_((bytes + kLine - 1) / kLine * kLine + (threads > 1 && bytes > 0 ? kGap : 0)) {}

  size_t bytes() const { return static_cast<size_t>(threads_ * each_); }
  template <class T = std::byte>
  T* share(void* scratch, int64_t number) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(scratch) + number * each_);
  }

 private:
  static constexpr int64_t kLine = 64, kGap = 32 * kLine;

  int64_t threads_ = 1, each_ = 0;
};

}  // namespace partita
