// SPDX-License-Identifier: Apache-2.0
// Chooses and makes a kernel for each step.
#include "passes/program.hpp"
#include "src/base/check.hpp"
#include "src/base/env.hpp"
#include "src/base/text.hpp"

namespace partita {

Status select_kernels(Program& program, const Target& target) {
  const std::string forced = env(Env::force_kernel).value_or("");
  for (Step& step : program.steps) {
    PT_ASSIGN(step.picked, pick_kernel(step.problem, target, forced).at(text_of(step)));
    PT_ASSIGN(step.run, step.picked.kernel->make(step.problem, target).at(step.picked.kernel->name));
  }
  return {};
}

}  // namespace partita
