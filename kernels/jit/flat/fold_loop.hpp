// SPDX-License-Identifier: Apache-2.0
// Loops with folds (reductions) in generated code.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_fold_loop(const Problem& problem);
Result<Run> make_fold_loop(const Problem& problem, const Target& target);

}  // namespace partita::jit
