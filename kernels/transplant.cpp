// SPDX-License-Identifier: Apache-2.0
// Copying of expressions; entry: Transplant::run().
#include "kernels/transplant.hpp"

namespace partita {

std::vector<ExprBuilder::Value> Transplant::run() {
  std::vector<ExprBuilder::Value> value(code_.size(), 0);
  for (size_t i = 0; i < code_.size(); ++i) {
    const Instr& in = code_[i];
    const auto a = value[in.a], b = value[in.b], c = value[in.c];
    if (in.op == ExprOp::load) {
      const int to = in_map[static_cast<size_t>(in.imm)];
      value[i] = to < 0 ? replacement[static_cast<size_t>(in.imm)] : builder_.load(to);
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

}  // namespace partita
