// SPDX-License-Identifier: Apache-2.0
// RowKernel: a flat kernel written as an expression over named operands.
#pragma once

#include <memory>
#include <vector>

#include "kernels/expr.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/problem.hpp"

namespace partita::jit {

/// Collects operands while an expression is written, then makes the code.
class RowKernelWriter {
 public:
  ExprBuilder builder() { return ExprBuilder(expr_); }
  /// The loaded value of a new input / the place of a new output; operands are numbered in this order.
  ExprBuilder::Value load(const RowOperand& operand);
  void store(const RowOperand& operand, ExprBuilder::Value value);
  /// The same for an output with a fold.
  void fold(const RowOperand& operand, ExprBuilder::Value value);
  /// Copies `from` with its loads (and, for back expressions, stores) as new operands in the order of `in` and `out`;
  /// its skeleton value is `skeleton`. Returns the value of its result.
  ExprBuilder::Value splice(const Expr& from, const std::vector<int>& in, const std::vector<RowOperand>& operands,
                            const std::vector<RowOperand>& outputs = {}, int skeleton = -1);
  /// After streaming calls end_streaming() is the caller's.
  std::shared_ptr<const FlatKernel> make(Isa isa, int64_t length, bool streaming, Fetching fetching = {}) const;

 private:
  Expr expr_;
  std::vector<RowOperand> in_, out_;
};

/// Operands that an expression loads, ascending.
std::vector<int> loaded_operands(const Expr& expr);
/// Whether the expression behind a skeleton does nothing but to store what that gives.
bool stores_alone(const Expr& back);

}  // namespace partita::jit
