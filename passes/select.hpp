// SPDX-License-Identifier: Apache-2.0
// A kernel for each step.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// By the pass that made the step.
bool is_made(const Step& step);
/// The kernel that the environment demands for this kind of step; empty where it names none of them.
std::string_view forced_kernel(StepKind step);
/// Chooses a kernel for a step.
Status pick_kernel_of(const Program& program, Step& step, const Target& target);
/// Chooses a kernel for every step and makes it; may change the type of temporaries (widen).
Status select_kernels(Program& program, const Target& target);

}  // namespace partita
