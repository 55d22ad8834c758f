// SPDX-License-Identifier: Apache-2.0
// Chooses and makes a kernel for each step.
#include "passes/program.hpp"
#include "src/base/check.hpp"
#include "src/base/env.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// The kernel that the environment demands for this kind of step; empty where it names none of them.
std::string_view forced_kernel(StepKind step) {
  const std::optional<std::string>& name = env(Env::force_kernel);
  if (!name) return {};
  for (const Kernel& row : kernels_for(step))
    if (row.name == *name) return *name;
  return {};
}

}  // namespace

Status select_kernels(Program& program, const Target& target) {
  for (Step& step : program.steps) {
    PT_ASSIGN(step.picked, pick_kernel(step.problem, target, forced_kernel(step.problem.step)).at(text_of(step)));
    PT_ASSIGN(step.run, step.picked.kernel->make(step.problem, target).at(step.picked.kernel->name));
  }
  return {};
}

}  // namespace partita
