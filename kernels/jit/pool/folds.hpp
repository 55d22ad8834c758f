// SPDX-License-Identifier: Apache-2.0
// PoolFolds: numbers, one a channel, that gradients of poolings fold the elements of their results into: sums for
// biases and for batch normalisation, made while the gradient is, or in its place.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/pool/plan.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// A walk is cut into units by position, which do not depend on threads: of rows that have all channels (channel-last),
/// or of planes or their parts (channel-first). The kernel folds a unit's elements into the f32 numbers of a slot: one
/// for each channel, or a vector for the plane, or part of one. What units make is folded in their order, in double.
class PoolFolds {
 public:
  /// Null where the folds of a gradient of poolings have a form that is known here.
  static const char* refuse(const Problem& problem);

  PoolFolds() = default;
  /// `units` of the whole walk, in the order of memory where they are planes; of the step's scratch memory the first
  /// `before` bytes are somebody else's.
  PoolFolds(const Problem& problem, const PoolPlan& plan, const Target& target, int64_t units, size_t before);
  bool any() const { return !outputs_.empty(); }
  size_t scratch_bytes() const;
  /// Behind the walk: writes the results.
  void finish(const RunArgs& args) const;

  /// What a thread has of it.
  class Part {
   public:
    Part(const PoolFolds& folds, const RunArgs& args, int number);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    /// run(args) folds into the slots, whose addresses are those of the results.
    template <class Call>
    void unit(int64_t unit, const Call& run) const {
      if (!folds_.any()) return run(args_);
      clear();
      run(args_);
      keep(unit);
    }

   private:
    void clear() const;
    void keep(int64_t unit) const;

    const PoolFolds& folds_;
    RunArgs args_;
    void* scratch_;
    float* slots_ = nullptr;
    std::array<void*, kMaxLoopOperands> out_;
  };

 private:
  struct Output {
    size_t port;
    Fold how;
    int64_t stride;  ///< from channel to channel, in elements
  };
  float* of_unit(void* scratch, int64_t unit, size_t output) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + units_at_) +
           (unit * std::ssize(outputs_) + static_cast<int64_t>(output)) * numbers_;
  }

  std::vector<Output> outputs_;
  bool channel_last_ = false;
  int64_t channels_ = 0;
  int64_t of_plane_ = 1;  // channel-first: units
  int64_t units_ = 0;
  int64_t slot_ = 0;                                  // numbers of a slot
  int64_t numbers_ = 0;                               // that are kept of it
  size_t slots_at_ = 0, units_at_ = 0, sums_at_ = 0;  // in the scratch memory
  ThreadScratch slots_;
};

}  // namespace partita::jit
