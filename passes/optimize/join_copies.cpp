// SPDX-License-Identifier: Apache-2.0
// Search for copies that make one concatenation.
#include "passes/optimize/join_copies.hpp"

#include <algorithm>

#include "passes/optimize/parts.hpp"

namespace partita {
namespace {

const TensorDesc& result_of(const Step& step) { return step.problem.out[0]; }

bool is_part(const Step& step) { return is_copy(step.problem) && step.in[0] >= 0 && step.in[0] != step.out[0]; }

/// The steps as one that concatenates along the axis.
Step joined(const std::vector<Step>& steps, size_t begin, size_t end, int axis) {
  Step step;
  step.problem.step = StepKind::concat;
  step.problem.op = OpKind::Concat;
  step.problem.attrs.set(Attr::axis, int64_t{axis});
  step.problem.out = {result_of(steps[begin])};
  step.problem.out[0].dims[axis] = 0;
  step.out = steps[begin].out;
  for (size_t s = begin; s < end; ++s) {
    step.problem.in.push_back(steps[s].problem.in[0]);
    step.problem.out[0].dims[axis] += result_of(steps[s]).dims[axis];
    step.in.push_back(steps[s].in[0]);
    for (const std::string& op : steps[s].ops)
      if (std::ranges::count(step.ops, op) == 0) step.ops.push_back(op);
  }
  return step;
}

}  // namespace

void join_copies(Program& program, const Target& target) {
  std::vector<Step>& steps = program.steps;
  for (size_t begin = 0; begin + 1 < steps.size(); ++begin) {
    const auto continues = [&](size_t s) {
      return s < steps.size() && is_part(steps[s]) && steps[s].out == steps[begin].out;
    };
    if (!is_part(steps[begin]) || !continues(begin + 1)) continue;
    const auto axis = axis_between(result_of(steps[begin]), result_of(steps[begin + 1]));
    if (!axis) continue;
    size_t end = begin + 2;
    while (continues(end) && axis_between(result_of(steps[end - 1]), result_of(steps[end])) == axis) ++end;
    Step whole = joined(steps, begin, end, *axis);
    const auto picked = pick_kernel(whole.problem, target);
    if (!picked.ok() || picked->kernel->slow) continue;
    steps[begin] = std::move(whole);
    steps.erase(steps.begin() + static_cast<long>(begin) + 1, steps.begin() + static_cast<long>(end));
  }
}

}  // namespace partita
