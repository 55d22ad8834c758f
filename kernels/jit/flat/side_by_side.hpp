// SPDX-License-Identifier: Apache-2.0
// SideBySide: an expression several times in one pass of a loop, over vectors at different places: so that numbers that
// elements are folded into wait less, and more streams of memory are on their way.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/expr.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/problem.hpp"

namespace partita::jit {

/// A product that need not be rounded before it is added to a sum.
inline ExprBuilder::Value product_for_sum(ExprBuilder b, ExprBuilder::Value x, ExprBuilder::Value y) {
  return b.fma(x, y, b.constant(0));
}

class SideBySide {
 public:
  /// Operands by number; outputs have the folds that `expr` says.
  SideBySide(const Expr& expr, std::vector<RowOperand> in, std::vector<RowOperand> out);

  /// Adds the expression over `count` vectors that follow each other, of the row that is `row` rows behind the one
  /// given; of an input of which every other element is asked for, two vectors have the even and the odd ones of both.
  /// Inputs that lie at one place are shared, and what is folded there is folded with each other first. What
  /// operands say of fetching is done once a line.
  void add_vectors(Isa isa, int count, int64_t row = 0);
  /// Once, when all are added; fills the operands of `shape`. With AVX-512 two vectors of 16-bit elements go in pairs
  /// (pairs.hpp).
  Lanes lanes(Isa isa, RowShape& shape);

 private:
  using Value = ExprBuilder::Value;
  void add(Isa isa, int vector, int64_t row);
  static int append(std::vector<RowOperand>& side, std::vector<TensorDesc>& types, RowOperand operand, int place,
                    int64_t behind);

  std::vector<Instr> code_;
  std::vector<RowOperand> in_, out_;  ///< as given
  Expr expr_;
  RowShape shape_{.length = 0};
  Problem types_;
  std::vector<std::optional<Value>> folded_;  ///< of each output of shape_ that folds
  int count_ = 0;
};

/// Code of `expr` for so many vectors of a row at once; `shape` becomes that code's.
Lanes vectors_at_once(const Expr& expr, RowShape& shape, int vectors, Isa isa);

/// `lanes`, which `expr` became, or code for two vectors of a row at once, operation by operation: where so much is
/// computed that each would wait for itself, for the processor looks only so far ahead, where bf16 is loaded in pairs,
/// and where two vectors of 16-bit results are a whole cache line that goes past the caches. `shape` becomes that
/// code's.
Lanes two_vectors(const Expr& expr, const Lanes& lanes, RowShape& shape, Isa isa);

/// Some rows of a loop at once.
class RowsAtOnce {
 public:
  RowsAtOnce() = default;
  /// Of the kernel with `expr` and the `shape` of one row, `rows` at once.
  RowsAtOnce(Isa isa, const Expr& expr, RowShape shape, int rows);

  /// Runs the first of call.rows, as many as it takes, if any; `call`, with its addresses `in` and `out`, then is about
  /// the others.
  void run(RowCall& call, std::span<const void*> in, std::span<void*> out) const {
    if (kernel_ && call.rows >= rows_) run_some(call, in, out);
  }

 private:
  void run_some(RowCall& call, std::span<const void*> in, std::span<void*> out) const;

  std::shared_ptr<const FlatKernel> kernel_;
  int64_t rows_ = 0;
  std::vector<int64_t> in_bytes_, out_bytes_;  ///< from row to row
};

/// Of a loop that streams, with `expr`, `lanes` and `shape` and `rows` rows along a call, four: one stream alone leaves
/// much of a core's bandwidth unused. None where so much is computed that memory does not matter.
RowsAtOnce row_streams(const Expr& expr, const Lanes& lanes, RowShape shape, int64_t rows, Isa isa);

/// The same of a loop in the caches, some of whose operands are the same for all rows (a number a channel, channels
/// last): each of their vectors is loaded once for four rows. None where there are no such operands, or much is
/// computed.
RowsAtOnce row_sharing(const Expr& expr, const Lanes& lanes, RowShape shape, int64_t rows, Isa isa);

/// The same of a loop in the caches whose rows are folded upon each other: their elements are folded before what lies
/// in memory is. None where results are made otherwise.
RowsAtOnce row_folds(const Expr& expr, const RowShape& shape, int64_t rows, Isa isa);

}  // namespace partita::jit
