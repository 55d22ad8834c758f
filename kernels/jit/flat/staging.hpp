// SPDX-License-Identifier: Apache-2.0
// Staging: rows that follow each other in a large result and leave it by way of scratch memory, some at once.
#pragma once

#include <algorithm>

#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

class Staging {
 public:
  Staging() = default;  ///< none: rows are written where they belong
  /// Of rows of `row_bytes` bytes, up to `most_rows` at once, on each of `threads` threads.
  Staging(int64_t threads, int64_t row_bytes, int64_t most_rows)
      : row_bytes_(row_bytes),
        rows_(std::clamp<int64_t>(kBytes / row_bytes, 1, most_rows)),
        scratch_(threads, static_cast<int64_t>(StagedLines::scratch_bytes(most()))) {}

  explicit operator bool() const { return rows_ > 0; }
  size_t scratch_bytes() const { return scratch_.bytes(); }
  /// Those of a thread, of the kernel's scratch memory; without memory where there is no staging.
  StagedLines lines(void* scratch, int number) const {
    return rows_ > 0 ? StagedLines(scratch_.share(scratch, number), most()) : StagedLines();
  }
  /// make(first, count, to) for all of `rows` rows, which belong to `to`, in turns.
  template <class F>
  void run(StagedLines& lines, std::byte* to, int64_t rows, F make) const {
    for (int64_t first = 0; first < rows; first += rows_, to += rows_ * row_bytes_) {
      const int64_t count = std::min(rows_, rows - first);
      make(first, count, lines.place(to));
      lines.written(to, static_cast<size_t>(count * row_bytes_));
    }
  }

 private:
  static constexpr int64_t kBytes = 8192;  ///< that leave for memory together, about
  size_t most() const { return static_cast<size_t>(rows_ * row_bytes_); }

  int64_t row_bytes_ = 0, rows_ = 0;
  ThreadScratch scratch_ = {1, 0};
};

}  // namespace partita::jit
