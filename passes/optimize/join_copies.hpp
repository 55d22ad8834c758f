// SPDX-License-Identifier: Apache-2.0
// Copies into neighbouring parts of one tensor become one step.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Joins loops in a row that copy tensors to parts of one result which follow each other along an axis (what is left of
/// a Concat where nothing was fused into it) into one StepKind::concat, where the target has a generated kernel for it:
/// that writes the result in the order of memory, and wakes the threads once.
void join_copies(Program& program, const Target& target);

}  // namespace partita
