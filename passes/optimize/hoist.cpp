// SPDX-License-Identifier: Apache-2.0
// Taking small independent values out of expressions; entry: hoist().
#include "passes/optimize/hoist.hpp"

#include <algorithm>
#include <array>

#include "kernels/transplant.hpp"
#include "passes/lower/lowering.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

constexpr int64_t kFewer = 8;  ///< so many times fewer elements than the result

using Value = ExprBuilder::Value;

std::array<Value, 3> operands_of(const Instr& in) { return {in.a, in.b, in.c}; }

class Hoist {
 public:
  Hoist(Step& product, Program& program) : step_(product), program_(program), code_(product.problem.back.code) {}

  std::vector<Step> run() {
    mark();
    std::vector<int> operand(code_.size(), -1);
    for (size_t i = 0; i < code_.size(); ++i)
      for (int k = 0; depends_[i] && k < operand_count(code_[i].op); ++k) {
        const Value v = operands_of(code_[i])[static_cast<size_t>(k)];
        if (depends_[v] || operand[v] >= 0 || !is_worth_it(v)) continue;
        operand[v] = take_out(v);
      }
    if (!loops_.empty()) rewrite(operand);
    return std::move(loops_);
  }

 private:
  void mark() {
    depends_.assign(code_.size(), false);
    for (size_t i = 0; i < code_.size(); ++i) {
      depends_[i] = code_[i].op == ExprOp::skeleton;
      for (int k = 0; k < operand_count(code_[i].op); ++k)
        depends_[i] = depends_[i] || depends_[operands_of(code_[i])[static_cast<size_t>(k)]];
    }
  }

  /// The instructions `v` is made of.
  std::vector<bool> parts_of(Value v) const {
    std::vector<bool> parts(code_.size(), false);
    parts[v] = true;
    for (size_t i = v + size_t{1}; i-- > 0;)
      for (int k = 0; parts[i] && k < operand_count(code_[i].op); ++k)
        parts[operands_of(code_[i])[static_cast<size_t>(k)]] = true;
    return parts;
  }

  /// Axes along which some operand of `v` does not repeat, with size 1 elsewhere.
  Dims space_of(const std::vector<bool>& parts) const {
    const Dims& whole = step_.problem.out[0].dims;
    Dims space(whole.size(), 1);
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!parts[i] || code_[i].op != ExprOp::load) continue;
      const TensorDesc& desc = step_.problem.in[static_cast<size_t>(code_[i].imm)];
      for (int d = 0; d < whole.size(); ++d)
        if (desc.strides[d] != 0) space[d] = whole[d];
    }
    return space;
  }

  bool is_worth_it(Value v) const {
    const std::vector<bool> parts = parts_of(v);
    int computed = 0;
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!parts[i]) continue;
      if (reads_place(code_[i].op)) return false;
      const bool moves = code_[i].op == ExprOp::load || code_[i].op == ExprOp::constant ||
                         code_[i].op == ExprOp::to_f32 || code_[i].op == ExprOp::cast;
      computed += moves ? 0 : 1;
    }
    return computed > 0 && elements(space_of(parts)) * kFewer <= elements(step_.problem.out[0].dims);
  }

  /// Returns the product's new operand.
  int take_out(Value v) {
    const std::vector<bool> parts = parts_of(v);
    const Dims space = space_of(parts), whole = step_.problem.out[0].dims;
    LoopStep loop;
    std::vector<Value> made(code_.size(), 0);
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!parts[i]) continue;
      const Instr& in = code_[i];
      ExprBuilder b = loop.builder();
      if (in.op == ExprOp::load) {
        TensorDesc desc = step_.problem.in[static_cast<size_t>(in.imm)];
        desc.dims = space;
        made[i] = loop.load(desc, step_.in[static_cast<size_t>(in.imm)], false);
      } else if (in.op == ExprOp::constant) {
        made[i] = b.constant(in.value);
      } else {
        made[i] = b.apply(in.op, made[in.a], made[in.b], made[in.c], in.imm);
      }
    }
    program_.buffers.push_back(
        {.role = Buffer::Role::temporary, .desc = logical_tensor(0, Dtype::f32, space), .content = {}});
    const int buffer = static_cast<int>(program_.buffers.size()) - 1;
    const TensorDesc result{Dtype::f32, space, dense_strides(space), 0};
    loop.store(result, buffer, made[v]);
    loops_.push_back(loop.take());
    loops_.back().ops = step_.ops;
    TensorDesc spread = result;
    spread.dims = whole;
    for (int d = 0; d < whole.size(); ++d)
      if (space[d] == 1) spread.strides[d] = 0;
    step_.in.push_back(buffer);
    step_.problem.in.push_back(spread);
    return static_cast<int>(step_.in.size()) - 1;
  }

  /// The expression with the new operands, and without what only made them.
  void rewrite(const std::vector<int>& operand) {
    Expr made;
    ExprBuilder b(made);
    std::vector<Value> value(code_.size(), 0);
    for (size_t i = 0; i < code_.size(); ++i) {
      const Instr& in = code_[i];
      if (operand[i] >= 0)
        value[i] = b.load(operand[i]);
      else if (in.op == ExprOp::load)
        value[i] = b.load(in.imm);
      else if (in.op == ExprOp::constant)
        value[i] = b.constant(in.value);
      else if (writes(in.op))
        b.fold(fold_of(in.op), in.imm, value[in.a]);
      else
        value[i] = b.apply(in.op, value[in.a], value[in.b], value[in.c], in.imm);
    }
    step_.problem.back = without_unused(made);
  }

  Step& step_;
  Program& program_;
  const std::vector<Instr> code_;
  std::vector<bool> depends_;
  std::vector<Step> loops_;
};

}  // namespace

std::vector<Step> hoist(Step& product, Program& program) { return Hoist(product, program).run(); }

}  // namespace partita
