// SPDX-License-Identifier: Apache-2.0
// Transplant: copies an expression into another one, with operands moved and chosen loads replaced by values; and
// what an expression reads and needs.
#pragma once

#include <utility>
#include <vector>

#include "kernels/expr.hpp"

namespace partita {

class Transplant {
 public:
  Transplant(std::vector<Instr> code, Expr& to) : code_(std::move(code)), builder_(to) {}

  std::vector<int> in_map, out_map;  ///< new operand number of each operand; -1: replaced (in) or not stored (out)
  std::vector<ExprBuilder::Value> replacement;  ///< of each operand whose in_map is -1
  /// What stands for the skeleton's value; -1: it stays the skeleton's value.
  int skeleton = -1;

  /// Returns the new value of each old instruction.
  std::vector<ExprBuilder::Value> run();

 private:
  std::vector<Instr> code_;
  ExprBuilder builder_;
};

/// Whether the expression reads the operand.
bool loads(const Expr& expr, int operand);
/// The same instructions without those that no store and no fold needs.
Expr without_unused(const Expr& back);

}  // namespace partita
