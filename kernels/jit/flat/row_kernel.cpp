// SPDX-License-Identifier: Apache-2.0
// Writing of row kernels.
#include "kernels/jit/flat/row_kernel.hpp"

#include <algorithm>

#include "kernels/jit/code/expand.hpp"
#include "kernels/transplant.hpp"

namespace partita::jit {

ExprBuilder::Value RowKernelWriter::load(const RowOperand& operand) {
  in_.push_back(operand);
  return builder().load(static_cast<int>(in_.size()) - 1);
}

void RowKernelWriter::store(const RowOperand& operand, ExprBuilder::Value value) {
  out_.push_back(operand);
  builder().store(static_cast<int>(out_.size()) - 1, value);
}

void RowKernelWriter::fold(const RowOperand& operand, ExprBuilder::Value value) {
  out_.push_back(operand);
  builder().fold(operand.fold, static_cast<int>(out_.size()) - 1, value);
}

ExprBuilder::Value RowKernelWriter::splice(const Expr& from, const std::vector<int>& in,
                                           const std::vector<RowOperand>& operands,
                                           const std::vector<RowOperand>& outputs, int skeleton) {
  Transplant t(from.code, expr_);
  t.skeleton = skeleton;
  t.in_map.assign(in.empty() ? 0 : static_cast<size_t>(in.back()) + 1, -1);
  for (size_t k = 0; k < in.size(); ++k) {
    t.in_map[static_cast<size_t>(in[k])] = static_cast<int>(in_.size());
    in_.push_back(operands[k]);
  }
  for (const RowOperand& output : outputs) {
    t.out_map.push_back(static_cast<int>(out_.size()));
    out_.push_back(output);
  }
  const auto values = t.run();
  return values.empty() ? ExprBuilder::Value{0} : values[from.result];
}

std::shared_ptr<const FlatKernel> RowKernelWriter::make(Isa isa, int64_t length, bool streaming,
                                                        Fetching fetching) const {
  Problem types;  // expansion asks for the operands' types alone
  for (const RowOperand& o : in_) types.in.push_back(described(o));
  for (const RowOperand& o : out_) types.out.push_back({o.dtype, {}, {}, 0});
  return std::make_shared<const FlatKernel>(
      isa, expanded(expr_, types, isa),
      RowShape{.length = length, .in = in_, .out = out_, .fetching = fetching, .streaming = streaming, .fenced = false},
      0);
}

bool stores_alone(const Expr& back) {
  return back.code.size() == 2 && back.code[0].op == ExprOp::skeleton && back.code[1].op == ExprOp::store;
}

std::vector<int> loaded_operands(const Expr& expr) {
  std::vector<int> list;
  for (const Instr& in : expr.code)
    if (in.op == ExprOp::load) list.push_back(in.imm);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace partita::jit
