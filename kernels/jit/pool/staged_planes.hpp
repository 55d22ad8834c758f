// SPDX-License-Identifier: Apache-2.0
// StagedPlanes: results of walks over planes, channels first, that are put together in scratch memory, from where whole
// cache lines leave past the caches, wherever planes begin.
#pragma once

#include <array>

#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/jit/pool/plan.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

class StagedPlanes {
 public:
  static constexpr size_t kMostResults = 8;
  /// Whether the planes of all results but those that are folded follow each other, as do their rows, and have up to
  /// `most_bytes` bytes.
  static bool fit(const PoolPlan& plan, int64_t most_bytes);
  static int64_t plane_bytes(const PoolPlan& plan, const PoolOperand& o) {
    return plan.g.src[1] * plan.g.src[2] * element_bytes(o.dtype);
  }

  StagedPlanes() = default;
  /// For up to `planes` planes at once, with room for `behind` more bytes, on each of `threads` threads.
  StagedPlanes(const PoolPlan& plan, int64_t planes, int64_t behind, int threads);
  size_t bytes() const { return scratch_.bytes(); }

  /// What a thread stages; nothing, where `staged` is null.
  class Part {
   public:
    Part(const StagedPlanes* staged, std::byte* scratch, int number);
    bool any() const { return staged_ != nullptr; }
    bool stages(size_t result) const { return staged_ != nullptr && staged_->each_[result] > 0; }
    /// Where to make planes of a result that belong to `to`, which is where the ones before ended.
    std::byte* place(size_t result, std::byte* to) { return stages(result) ? lines_[result].place(to) : to; }
    /// What of those before may leave meanwhile; of those that are staged, and folds, which have nothing.
    StagedLines::Lines lines(size_t result) const { return lines_[result].lines(); }
    /// They are made, and so many lines of those before have left. Of a result that is staged.
    void made(size_t result, std::byte* to, int64_t planes, int64_t lines);
    void finish();

   private:
    const StagedPlanes* staged_;
    std::array<StagedLines, kMostResults> lines_;
  };

 private:
  std::array<int64_t, kMostResults> plane_bytes_{};
  std::array<size_t, kMostResults> each_{};  ///< bytes at once
  size_t results_ = 0;
  ThreadScratch scratch_;
};

}  // namespace partita::jit
