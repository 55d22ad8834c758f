// SPDX-License-Identifier: Apache-2.0
// RowTables: what a loop computes of operands that are the same for all rows of a call (a number a channel, channels
// last) is computed once a call, into rows of f32, instead of for each row.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/problem.hpp"

namespace partita::jit {

class RowTables {
 public:
  static constexpr size_t kMost = 4;
  static constexpr int64_t kElements = 8192;  ///< of all tables
  using Memory = std::array<float, kElements>;

  /// Of a prepared loop without folds; none where every row needs as much without. Throws Xbyak::Error where there is
  /// no memory for code.
  static std::optional<RowTables> of(const Problem& loop, Isa isa);

  /// The loop that reads the tables, its last inputs.
  const Problem& loop() const { return loop_; }
  /// Computes the tables from the addresses that rows have for the loop's own inputs, and puts theirs behind these.
  void fill(const void** in, Memory& memory) const;

 private:
  RowTables() = default;

  Problem loop_;
  size_t inputs_ = 0, tables_ = 0, length_ = 0;
  std::shared_ptr<const FlatKernel> kernel_;
};

}  // namespace partita::jit
