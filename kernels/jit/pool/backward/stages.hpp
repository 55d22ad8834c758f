// SPDX-License-Identifier: Apache-2.0
// PoolStages: the steps of a pooling gradient that touch the user's tensors, as row kernels: preparing rows of windows
// and of source cells as f32, and the back expression over finished cells.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/jit/pool/plan.hpp"

namespace partita::jit {

/// What the rows of a call follow: the elements are channels (channel-last) or cells (channel-first).
enum class Along : uint8_t { nothing, x, y, c };

/// A place in a tensor.
struct Spot {
  int64_t n = 0, c = 0, z = 0, y = 0, x = 0;
};

/// Elements of a row and distance of the rows in scratch memory. `joined`: the elements run over further axes, too
/// (channel-last: x and channels; channel-first: all of the plane).
struct RowWalk {
  int64_t length = 0;
  Along along = Along::nothing;
  int64_t scratch_row_bytes = 0;
  bool joined = false;
  int64_t every = 1;  ///< rows of the tensors that one row of scratch memory stands for
  int64_t ahead = 0;  ///< rows before that one in which what is read is fetched; for rows that lie far apart
  friend bool operator==(const RowWalk&, const RowWalk&) = default;
};

class PoolStages {
 public:
  using Kernel = const FlatKernel*;
  struct Back {
    Kernel plain = nullptr, streaming = nullptr;  ///< streaming: null where the result may stay in the caches
  };

  PoolStages(const PoolPlan& plan, Isa isa) : p_(plan), isa_(isa), window_weights_(plan.window_weights()) {}

  /// Kernels, made at compile time; equal ones are made once. The pooled side's elements (`joinable_pooled`), the
  /// result's side (`joinable_cells`) tell whether a walk may be joined.
  std::vector<Kernel> sum(size_t covers, const RowWalk& walk);
  Kernel gradients(const RowWalk& walk);
  Kernel source(const RowWalk& walk);
  /// Over the sum of so many rows of scratch memory.
  Back back(size_t summed, const RowWalk& walk, bool may_stream);
  bool joinable_pooled() const;
  bool joinable_source() const;
  bool joinable_cells() const;

  /// Rows (at least one) from `at` on. `covers` tells the rows of windows that are summed, instead of at.z and at.y.
  void run_sum(const std::vector<Kernel>& kernels, const RunArgs& args, const std::vector<RowCover>& covers,
               const Spot& at, int64_t rows, std::byte* to) const;
  void run_gradients(Kernel kernel, const RunArgs& args, const Spot& at, int64_t rows, std::byte* to) const;
  void run_source(Kernel kernel, const RunArgs& args, const Spot& at, int64_t rows, std::byte* to) const;
  void run_back(Kernel kernel, const RunArgs& args, std::span<const std::byte* const> summed, const Spot& at,
                int64_t rows) const;

  static constexpr int64_t kMaxSummed = 32;  ///< rows that back adds up at the most
  /// Null where all operands fit, else why not.
  static const char* refuse(const PoolPlan& plan);

 private:
  static constexpr size_t kMaxOperands = 96;
  static constexpr size_t kSumRows = 8;  ///< of windows that one kernel adds up
  enum class Kind : uint8_t { sum, gradients, source, back };
  struct Key {
    Kind kind;
    int form;  ///< of kernels of one kind
    RowWalk walk;
    bool streaming = false;
    friend bool operator==(const Key&, const Key&) = default;
  };

  RowOperand operand(const PoolOperand& o, const RowWalk& walk) const;
  static RowOperand scratch_rows(const RowWalk& walk) { return {Dtype::f32, true, walk.scratch_row_bytes}; }
  bool joinable(const PoolOperand& o, const Dims& spatial) const;
  std::vector<RowOperand> front_operands(const RowWalk& walk) const;
  void write_sum(RowKernelWriter& w, size_t rows, bool first, bool last, const RowWalk& walk) const;
  template <class Write>
  Kernel made(const Key& key, Write write);

  const PoolPlan& p_;
  Isa isa_;
  std::vector<float> window_weights_;
  std::vector<std::pair<Key, std::shared_ptr<const FlatKernel>>> kernels_;  ///< few, so that they are searched
};

}  // namespace partita::jit
