// SPDX-License-Identifier: Apache-2.0
// Memory of a program: temporaries that live at different times share one arena; in-place pairs are found.
#include "passes/plan.hpp"

#include <algorithm>

#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

struct Lifetime {
  int buffer = 0;
  size_t bytes = 0;
  int first = -1, last = -1;  ///< steps
  bool meets(const Lifetime& o) const { return first <= o.last && o.first <= last; }
};

std::vector<Lifetime> lifetimes(const Program& p) {
  std::vector<Lifetime> list;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].role != Buffer::Role::temporary) continue;
    Lifetime life{static_cast<int>(b), aligned(p.buffers[b].desc.size_bytes()), -1, -1};
    for (size_t s = 0; s < p.steps.size(); ++s) {
      if (!p.steps[s].reads(life.buffer) && !p.steps[s].writes(life.buffer)) continue;
      if (life.first < 0) life.first = static_cast<int>(s);
      life.last = static_cast<int>(s);
    }
    if (life.first >= 0) list.push_back(life);
  }
  return list;
}

/// Largest first, each at the lowest place free during its life.
size_t place(std::vector<Lifetime> list, Program& p) {
  std::stable_sort(list.begin(), list.end(), [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
  size_t end = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    std::vector<std::pair<size_t, size_t>> taken;
    for (size_t j = 0; j < i; ++j)
      if (list[j].meets(list[i])) {
        const size_t at = p.buffers[static_cast<size_t>(list[j].buffer)].offset;
        taken.emplace_back(at, at + list[j].bytes);
      }
    std::sort(taken.begin(), taken.end());
    size_t at = 0;
    for (const auto& [from, to] : taken) {
      if (at + list[i].bytes <= from) break;
      at = std::max(at, to);
    }
    p.buffers[static_cast<size_t>(list[i].buffer)].offset = at;
    end = std::max(end, at + list[i].bytes);
  }
  return end;
}

size_t most_operands(const Program& p) {
  size_t most = 0;
  for (const Step& step : p.steps) most = std::max(most, step.in.size() + step.out.size() + step.run.packs.size());
  return most;
}

/// Places for what the constant cache keeps.
size_t place_kept(Program& p) {
  size_t end = 0;
  const auto placed = [&](size_t bytes) {
    const size_t at = end;
    end += aligned(bytes);
    return at;
  };
  for (Step& step : p.steps) {
    if (step.constant)
      for (int b : step.out) {
        Buffer& made = p.buffers[static_cast<size_t>(b)];
        made.kept_offset = placed(made.desc.size_bytes());
      }
    step.packs_at.clear();
    for (const Pack& pack : step.run.packs) {
      const bool keeps = !step.constant && step.problem.is_constant(pack.port);
      step.packs_at.push_back(keeps ? placed(pack.bytes) : Step::kNotKept);
    }
  }
  return end;
}

bool has(const Expr& expr, ExprOp op, size_t operand) {
  return std::any_of(expr.code.begin(), expr.code.end(),
                     [&](const Instr& in) { return in.op == op && static_cast<size_t>(in.imm) == operand; });
}

/// Operands that the walk of the step itself reads, wherever it likes; the expressions have the others.
size_t walked_operands(const Problem& p) { return p.step == StepKind::loop ? 0 : static_cast<size_t>(p.in_ports()); }

/// True where an element of operand `k` is read for the last time when that of the result is made.
bool read_for_the_result(const Problem& p, size_t k) {
  // A slice is read from end to end before its result is made, element by element, of the same operands.
  if (traits_of(p.step).rows) return has(front_expression(p), ExprOp::load, k) || has(p.back, ExprOp::load, k);
  return k >= walked_operands(p) && has(p.back, ExprOp::load, k) && !has(p.front, ExprOp::load, k);
}

/// An output may take the place of an input that is read at the same places and never again, where the kernel loads
/// what it needs of an element before it stores the element.
class InPlace {
 public:
  explicit InPlace(Program& program) : p_(program), taken_(program.buffers.size(), false) {}

  void run() {
    each_pair([this](size_t s, size_t k, size_t o) { return pair_ports(p_.steps[s], k, o); });
    each_pair([this](size_t s, size_t k, size_t o) { return share_memory(s, k, o); });
  }

 private:
  Buffer& buffer(int b) { return p_.buffers[static_cast<size_t>(b)]; }

  /// take(step, operand, output) for all that may share places by what the step does, until it is true.
  template <class Take>
  void each_pair(const Take& take) {
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      const Step& step = p_.steps[s];
      for (size_t o = 0; o < step.out.size(); ++o) {
        if (elements(step.problem.out[o].dims) != buffer(step.out[o]).desc.elements()) continue;
        for (size_t k = 0; k < step.in.size(); ++k)
          if (goes_along(step, k, o) && is_free_behind(s, k) && take(s, k, o)) break;
      }
    }
  }

  /// The step reads an element of operand `k` for the last time before it stores the output's at the same place.
  static bool goes_along(const Step& step, size_t k, size_t o) {
    if (step.problem.step == StepKind::tiles)
      return std::find(step.inplace.begin(), step.inplace.end(), std::pair(k, o)) != step.inplace.end();
    if (!step.picked.kernel || !step.picked.kernel->in_place) return false;
    if (!has(back_expression(step.problem), ExprOp::store, o) || !read_for_the_result(step.problem, k)) return false;
    const TensorDesc &in = step.problem.in[k], &out = step.problem.out[o];
    if (in.dims != out.dims || in.strides != out.strides || in.offset != out.offset) return false;
    return bits_of(in.dtype) == bits_of(out.dtype) && bits_of(in.dtype) >= 8;
  }

  /// Operand `k` of step `s` is nothing that anybody needs behind it, and no result of the step lives there already.
  bool is_free_behind(size_t s, size_t k) {
    const Step& step = p_.steps[s];
    const int b = step.in[k];
    if (b == Step::kNoBuffer || step.writes(b)) return false;
    if (taken_[static_cast<size_t>(b)] || std::count(step.in.begin(), step.in.end(), b) != 1) return false;
    return std::none_of(p_.steps.begin() + static_cast<long>(s) + 1, p_.steps.end(),
                        [&](const Step& later) { return later.reads(b) || later.writes(b); });
  }

  /// The caller may give one memory for both.
  bool pair_ports(const Step& step, size_t k, size_t o) {
    const Buffer &from = buffer(step.in[k]), &to = buffer(step.out[o]);
    if (from.role != Buffer::Role::input || from.desc.property == Property::constant) return false;
    if (to.role != Buffer::Role::output) return false;
    taken_[static_cast<size_t>(step.in[k])] = taken_[static_cast<size_t>(step.out[o])] = true;
    p_.inplace.emplace_back(from.tensor, to.tensor);
    return true;
  }

  /// The temporary that operand `k` is becomes the memory of the output, which nobody has touched till then, and which
  /// is no input's either.
  bool share_memory(size_t s, size_t k, size_t o) {
    const int from = p_.steps[s].in[k], to = p_.steps[s].out[o];
    const auto owned = [&](int b) { return buffer(b).role == Buffer::Role::temporary && !buffer(b).kept; };
    if (!owned(from) || !(owned(to) || buffer(to).role == Buffer::Role::output)) return false;
    if (taken_[static_cast<size_t>(to)] || buffer(from).desc.size_bytes() > buffer(to).desc.size_bytes()) return false;
    if (elements(p_.steps[s].problem.in[k].dims) != buffer(from).desc.elements()) return false;
    for (size_t before = 0; before < s; ++before)
      if (p_.steps[before].reads(to) || p_.steps[before].writes(to)) return false;
    if (std::count(p_.steps[s].out.begin(), p_.steps[s].out.end(), to) != 1 || p_.steps[s].reads(to)) return false;
    for (size_t of = 0; of <= s; ++of)
      for (auto* side : {&p_.steps[of].in, &p_.steps[of].out}) std::replace(side->begin(), side->end(), from, to);
    return true;
  }

  Program& p_;
  std::vector<bool> taken_;  // ports that share memory with another
};

}  // namespace

void plan_memory(Program& program) {
  InPlace(program).run();
  program.kept_bytes = place_kept(program);
  program.scratch_offset = place(lifetimes(program), program);
  size_t scratch = 0;
  for (const Step& step : program.steps) scratch = std::max(scratch, aligned(step.run.scratch_bytes));
  program.pointers_offset = program.scratch_offset + scratch;
  program.addresses = program.buffers.size() + std::max(most_operands(program), program.inputs.size());
  const bool many = program.addresses > Program::kPointersOnStack;
  program.arena_bytes = program.pointers_offset + (many ? aligned(program.addresses * sizeof(void*)) : 0);
}

}  // namespace partita
