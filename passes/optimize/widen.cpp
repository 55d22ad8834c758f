// SPDX-License-Identifier: Apache-2.0
// One temporary after the other; a change that costs a step its kernel is taken back.
#include "passes/optimize/widen.hpp"

#include <algorithm>
#include <utility>

#include "passes/select.hpp"
#include "src/base/dtype.hpp"

namespace partita {
namespace {

class Widening {
 public:
  Widening(Program& program, const Target& target) : p_(program), target_(target) {}

  void run() {
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      const Buffer& buffer = p_.buffers[b];
      if (buffer.role != Buffer::Role::temporary || buffer.kept || !is_floating(buffer.desc.dtype)) continue;
      if (bits_of(buffer.desc.dtype) < 32 && is_copied(static_cast<int>(b))) widen_buffer(static_cast<int>(b));
    }
  }

 private:
  /// Whether a step that may round its result makes it, and products on copies read it, beside whom only loops do.
  bool is_copied(int b) {
    maker_ = nullptr;
    readers_.clear();
    bool copied = false;
    for (Step& step : p_.steps) {
      if (step.writes(b)) {
        if (maker_ || is_made(step) || !makes_with_expression(step, b)) return false;
        maker_ = &step;
      }
      if (!step.reads(b)) continue;
      if (is_made(step)) return false;
      if (step.picked.kernel->in_floats)
        copied = true;
      else if (step.problem.step != StepKind::loop)
        return false;
      readers_.push_back(&step);
    }
    return maker_ && copied;
  }

  static bool makes_with_expression(const Step& step, int b) {
    const StepKind kind = step.problem.step;
    if (kind != StepKind::loop && (!traits_of(kind).skeleton || is_product(kind))) return false;
    return std::ranges::count(step.out, b) == 1 && store_of(back_expression(step.problem), step, b) >= 0;
  }

  /// The instruction that stores the buffer; -1: none.
  static int store_of(const Expr& back, const Step& step, int b) {
    const auto output = static_cast<int32_t>(std::ranges::find(step.out, b) - step.out.begin());
    const auto stores = [&](const Instr& in) { return in.op == ExprOp::store && in.imm == output; };
    if (std::ranges::count_if(back.code, stores) != 1) return -1;
    return static_cast<int>(std::ranges::find_if(back.code, stores) - back.code.begin());
  }

  void widen_buffer(int b) {
    std::vector<std::pair<Step*, Step>> before = {{maker_, *maker_}};
    for (Step* reader : readers_) before.emplace_back(reader, *reader);
    logical_tensor& desc = p_.buffers[static_cast<size_t>(b)].desc;
    const Dtype narrow = desc.dtype;
    round_result(b, narrow);
    set_type(b, Dtype::f32);
    bool same = true;
    for (const auto& [step, old] : before) same = same && picks_like(*step, old);
    if (same) return;
    set_type(b, narrow);
    for (auto& [step, old] : before) *step = std::move(old);
  }

  void round_result(int b, Dtype narrow) {
    Expr back = back_expression(maker_->problem);
    const int store = store_of(back, *maker_, b);
    Instr& rounded = back.code[static_cast<size_t>(store)];
    const int32_t output = rounded.imm;
    rounded = {.op = ExprOp::cast, .a = rounded.a, .imm = static_cast<int32_t>(narrow)};
    ExprBuilder(back).store(output, static_cast<ExprBuilder::Value>(store));
    maker_->problem.back = std::move(back);
  }

  void set_type(int b, Dtype dtype) {
    p_.buffers[static_cast<size_t>(b)].desc.dtype = dtype;
    for (Step& step : p_.steps) {
      for (size_t k = 0; k < step.in.size(); ++k)
        if (step.in[k] == b) step.problem.in[k].dtype = dtype;
      for (size_t k = 0; k < step.out.size(); ++k)
        if (step.out[k] == b) step.problem.out[k].dtype = dtype;
    }
  }

  /// Picks a kernel for what has changed; false where it is another one than before, but for products: they may have
  /// one for f32.
  bool picks_like(Step& step, const Step& old) {
    const bool product = old.picked.kernel->in_floats;
    if (!pick_kernel_of(p_, step, target_).ok()) return false;
    return product ? !step.picked.kernel->slow : step.picked.kernel == old.picked.kernel;
  }

  Program& p_;
  const Target& target_;
  Step* maker_ = nullptr;
  std::vector<Step*> readers_;
};

}  // namespace

void widen(Program& program, const Target& target) { Widening(program, target).run(); }

}  // namespace partita
