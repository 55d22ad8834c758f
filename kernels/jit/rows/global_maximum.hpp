// SPDX-License-Identifier: Apache-2.0
// Generated gradients of maxima over all cells of a plane, in both data formats, with expressions around them.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

/// Null, or why this is not such a gradient or cannot be run.
const char* refuse_global_maximum(const Problem& problem, const Target& target);
Result<Run> make_global_maximum(const Problem& problem, const Target& target);

}  // namespace partita::jit
