// SPDX-License-Identifier: Apache-2.0
// Copying of expressions; entry: Transplant::run().
#include "kernels/transplant.hpp"

#include <algorithm>

namespace partita {

std::vector<ExprBuilder::Value> Transplant::run() {
  std::vector<ExprBuilder::Value> value(code_.size(), 0);
  for (size_t i = 0; i < code_.size(); ++i) {
    const Instr& in = code_[i];
    const auto a = value[in.a], b = value[in.b], c = value[in.c];
    if (in.op == ExprOp::load) {
      const int to = in_map[static_cast<size_t>(in.imm)];
      value[i] = to < 0 ? replacement[static_cast<size_t>(in.imm)] : builder_.load(to);
    } else if (in.op == ExprOp::uniform) {
      value[i] = builder_.apply(in.op, a, b, 0, in_map[static_cast<size_t>(in.imm)]);
    } else if (writes(in.op)) {
      value[i] = a;
      const int to = out_map[static_cast<size_t>(in.imm)];
      if (to >= 0) builder_.fold(fold_of(in.op), to, a);
    } else if (in.op == ExprOp::constant) {
      value[i] = builder_.constant(in.value);
    } else if (in.op == ExprOp::skeleton && skeleton >= 0) {
      value[i] = static_cast<ExprBuilder::Value>(skeleton);
    } else {
      value[i] = builder_.apply(in.op, a, b, c, in.imm);
    }
  }
  return value;
}

bool loads(const Expr& expr, int operand) {
  return std::ranges::any_of(expr.code, [&](const Instr& in) { return reads_operand(in.op) && in.imm == operand; });
}

Expr without_unused(const Expr& back) {
  const std::vector<Instr>& code = back.code;
  std::vector<bool> needed(code.size(), false);
  for (size_t i = code.size(); i-- > 0;) {
    needed[i] = needed[i] || writes(code[i].op);
    const uint16_t operands[] = {code[i].a, code[i].b, code[i].c};
    for (int k = 0; needed[i] && k < operand_count(code[i].op); ++k) needed[operands[k]] = true;
  }
  Expr made;
  std::vector<uint16_t> place(code.size(), 0);
  for (size_t i = 0; i < code.size(); ++i) {
    if (!needed[i]) continue;
    Instr in = code[i];
    in.a = place[in.a];
    in.b = place[in.b];
    in.c = place[in.c];
    place[i] = static_cast<uint16_t>(made.code.size());
    made.code.push_back(in);
  }
  return made;
}

}  // namespace partita
