// SPDX-License-Identifier: Apache-2.0
// Loops and skeleton steps that walk the same data become one step.
#pragma once

#include <functional>

#include "passes/program.hpp"

namespace partita {

/// Whether a skeleton step (pooling, softmax, ..) that became `joined` with a loop shall replace it and the loop.
using JoinRule = std::function<bool(const Problem& joined, const Problem& plain)>;
/// Joins loops with the loops they read from, and with the skeleton steps they stand in front of or behind, so that
/// data is walked once.
void fuse_loops(Program& program, const JoinRule& shall_join);
/// The same where kernels of the target take the joined step; never at the price of a slow kernel.
void fuse_loops(Program& program, const Target& target);

}  // namespace partita
