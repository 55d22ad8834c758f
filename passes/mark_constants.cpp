// SPDX-License-Identifier: Apache-2.0
// Inputs and steps whose content no execution changes.
#include "passes/mark_constants.hpp"

#include <algorithm>

namespace partita {
namespace {

bool is_constant(const Buffer& b) {
  if (b.role == Buffer::Role::constant || b.kept) return true;
  return b.role == Buffer::Role::input && b.desc.property == Property::constant;
}

/// A step that reads constants alone runs once; its results must be nobody else's.
bool makes_constants(const Program& p, const Step& step) {
  const auto constant = [&](int b) { return b == Step::kNoBuffer || is_constant(p.buffers[static_cast<size_t>(b)]); };
  const auto own = [&](int b) {
    const auto writers = std::count_if(p.steps.begin(), p.steps.end(), [&](const Step& s) { return s.writes(b); });
    return p.buffers[static_cast<size_t>(b)].role == Buffer::Role::temporary && writers == 1;
  };
  return !step.in.empty() && std::all_of(step.in.begin(), step.in.end(), constant) &&
         std::all_of(step.out.begin(), step.out.end(), own);
}

}  // namespace

void mark_constants(Program& program) {
  for (Step& step : program.steps) {
    step.problem.constant_ports = 0;
    for (size_t k = 0; k < std::min(step.in.size(), Problem::kMostPorts); ++k)
      if (step.in[k] != Step::kNoBuffer && is_constant(program.buffers[static_cast<size_t>(step.in[k])]))
        step.problem.constant_ports |= uint64_t{1} << k;
    step.constant = makes_constants(program, step);
    if (step.constant)
      for (int b : step.out) program.buffers[static_cast<size_t>(b)].kept = true;
  }
}

}  // namespace partita
