// SPDX-License-Identifier: Apache-2.0
// TurnedPool: a channel-first pooling whose planes are turned, some at a time, so that vectors go across channels.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/flat/transpose.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// Rows of a few cells fill vectors badly. So as many planes as stay in the caches, of one image or of several, become
/// the channels of one image whose channels lie last, in scratch memory; what is made of them there is turned back.
class TurnedPool {
 public:
  /// The pooling of one group of planes, channels last. Absent where there are few planes, or large ones, or where they
  /// cannot be turned: operands have to be dense planes that follow each other evenly, or not to move along the cells,
  /// or not along the planes.
  static std::optional<Problem> of_group(const Problem& problem);

  /// `group` computes of_group(problem). Throws Xbyak::Error where there is no memory for code.
  TurnedPool(const Problem& problem, const Target& target, Run group);
  TurnedPool(const TurnedPool&) = delete;
  TurnedPool& operator=(const TurnedPool&) = delete;

  size_t scratch_bytes() const { return scratch_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  /// What a group has of a tensor in scratch memory.
  struct Operand {
    int64_t cells = 0;                 ///< of a plane; 0: nothing is turned
    int64_t each = 0;                  ///< bytes of an element; 0: the tensor is read where it is
    int64_t offset = 0, n = 0, c = 0;  ///< bytes in memory
    int64_t at = 0;                    ///< in scratch memory
    int64_t plane = 0;                 ///< bytes from plane to plane
    bool follow = false;               ///< there is nothing between planes
    bool is_streamed = false;          ///< a result that goes past the caches
    int next = -1;                     ///< not -1: the input whose next planes are fetched while the result does
    bool is_fetched = false;           ///< an input that is some result's `next`
    std::unique_ptr<const TransposeKernel> whole = nullptr;  ///< of groups that have all planes
    std::unique_ptr<const TransposeKernel> rest = nullptr;   ///< of the last one
  };

  Operand operand(const TensorDesc& desc);
  void make_kernels(Operand& o, Isa isa, bool is_result);
  void run(const RunArgs& args, int64_t first, std::byte* scratch) const;
  void copy_numbers(const Operand& o, const void* base, int64_t first, std::byte* to) const;
  const std::byte* in_memory(const Operand& o, const void* base, int64_t plane) const;
  int64_t planes_from(int64_t first) const { return std::min(together_, planes_ - first); }
  const TransposeKernel& kernel(const Operand& o, int64_t first) const {
    return planes_from(first) == together_ ? *o.whole : *o.rest;
  }

  Run group_;
  int threads_;
  int64_t channels_, planes_, together_;
  // in scratch memory
  int64_t streamed_at_ = 0;    ///< planes on their way past the caches
  int64_t group_scratch_ = 0;  ///< that of `group`
  std::vector<Operand> in_, out_;
  ThreadScratch scratch_;
};

/// `problem` by TurnedPool; `make` makes what computes `group`, which is TurnedPool::of_group(problem).
Result<Run> make_turned(const Problem& problem, const Problem& group, const Target& target,
                        Result<Run> (*make)(const Problem&, const Target&));

}  // namespace partita::jit
