// SPDX-License-Identifier: Apache-2.0
// Selects that have zero in the gradient's place unless an operand is positive.
#include "kernels/jit/pool/backward/choices.hpp"

#include <cmath>

#include "kernels/needless_casts.hpp"

namespace partita::jit {

std::optional<std::vector<PoolChoice>> choices_of(const PoolPlan& p, const Problem& problem) {
  const Expr back =
      without_needless_casts(p.back, problem, /*bf16_drops_denormals=*/true, /*skeleton_is_rounded=*/true);
  std::vector<std::optional<PoolChoice>> value(back.code.size());
  std::vector<PoolChoice> results(p.out.size());
  const auto is_zero = [&](uint16_t k) {
    return back.code[k].op == ExprOp::constant && back.code[k].value == 0 && !std::signbit(back.code[k].value);
  };
  for (size_t i = 0; i < back.code.size(); ++i) {
    const Instr& in = back.code[i];
    if (in.op == ExprOp::skeleton) value[i] = PoolChoice{};
    if (in.op == ExprOp::select && value[in.b] && is_zero(in.c)) {
      const Instr& condition = back.code[in.a];
      if (condition.op != ExprOp::gt || back.code[condition.a].op != ExprOp::load || !is_zero(condition.b)) continue;
      value[i] = value[in.b];
      value[i]->push_back(back.code[condition.a].imm);
    }
    if (!writes(in.op)) continue;
    if ((in.op != ExprOp::store && in.op != ExprOp::fold_sum) || !value[in.a]) return {};
    results[static_cast<size_t>(in.imm)] = *value[in.a];
  }
  return results;
}

}  // namespace partita::jit
