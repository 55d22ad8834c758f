// SPDX-License-Identifier: Apache-2.0
// Splitting of pooling gradients whose result waits for their folds; entry: make_again().
#include "passes/optimize/make_again.hpp"

#include <algorithm>

#include "kernels/loop/fold_plan.hpp"
#include "kernels/pool_geometry.hpp"
#include "kernels/transplant.hpp"
#include "src/base/dtype.hpp"

namespace partita {
namespace {

/// Windows right behind each other, in wide types: else making cells takes longer than reading them. It does not where
/// windows hang over, or cells lie behind the last one (10 to 15 % less time than with the gradient stored).
bool is_quick(const Problem& p) {
  if (bits_of(p.in[0].dtype) < 32) return false;
  const PoolGeometry g = pool_geometry(p, p.out[0].dims, p.in[static_cast<size_t>(front_port(p.step))].dims);
  return g.kernel == g.strides;
}

/// Without operands behind the ports that no expression reads.
void drop_operands(Step& step) {
  Problem& p = step.problem;
  const auto ports = static_cast<size_t>(p.in_ports());
  for (size_t k = step.in.size(); k-- > ports;) {
    if (loads(p.front, static_cast<int>(k)) || loads(p.back, static_cast<int>(k))) continue;
    step.in.erase(step.in.begin() + static_cast<long>(k));
    p.in.erase(p.in.begin() + static_cast<long>(k));
    for (Expr* e : {&p.front, &p.back})
      for (Instr& in : e->code)
        if (reads_operand(in.op) && static_cast<size_t>(in.imm) > k) --in.imm;
  }
}

/// The step with those of its outputs alone that `keeps` names, and what they need.
template <class Keeps>
Step with_outputs(const Step& step, const Keeps& keeps) {
  Step made = step;
  made.out.clear();
  made.problem.out.clear();
  Transplant moved(step.problem.back.code, made.problem.back = {});
  for (size_t k = 0; k < step.out.size(); ++k) {
    moved.out_map.push_back(keeps(k) ? static_cast<int>(made.out.size()) : -1);
    if (!keeps(k)) continue;
    made.out.push_back(step.out[k]);
    made.problem.out.push_back(step.problem.out[k]);
  }
  for (size_t k = 0; k < step.in.size(); ++k) moved.in_map.push_back(static_cast<int>(k));
  moved.run();
  made.problem.back = without_unused(made.problem.back);
  drop_operands(made);
  return made;
}

/// The one step that reads output `k` of step `s`, a loop behind it; 0: there is none.
size_t reader_of(const Program& p, size_t s, size_t k) {
  const int b = p.steps[s].out[k];
  if (p.buffers[static_cast<size_t>(b)].role != Buffer::Role::temporary) return 0;
  size_t found = 0;
  for (size_t r = 0; r < p.steps.size(); ++r) {
    if (!p.steps[r].reads(b)) continue;
    if (found != 0 || r < s || p.steps[r].problem.step != StepKind::loop) return 0;
    found = r;
  }
  return found;
}

}  // namespace

bool make_again(Program& program) {
  bool any = false;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    if (step.problem.step == StepKind::loop || !has_folds(step.problem) || !is_quick(step.problem)) continue;
    for (size_t k = 0; k < step.out.size(); ++k) {
      if (fold_of_output(step.problem.back, k) != Fold::none) continue;
      const size_t reader = reader_of(program, s, k);
      if (reader == 0) continue;
      Step stores = with_outputs(program.steps[s], [&](size_t o) { return o == k; });
      program.steps[s] = with_outputs(program.steps[s], [&](size_t o) { return o != k; });
      const auto& named = program.steps[reader].ops;
      std::erase_if(stores.ops, [&](const std::string& op) { return std::ranges::find(named, op) != named.end(); });
      program.steps.insert(program.steps.begin() + static_cast<long>(reader), std::move(stores));
      any = true;
      break;
    }
  }
  return any;
}

}  // namespace partita
