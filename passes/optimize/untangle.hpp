// SPDX-License-Identifier: Apache-2.0
// Operands whose axes lie in different orders in memory.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Where a step's tensors lie in different orders and generated kernels do not take that (a loop that folds, poolings,
/// resampling, norms and softmax), those in other orders than one are copied - the order of most bytes, where that
/// helps: inputs before the step, results behind it. Later loops read the copies, too. So are tensors of poolings and
/// rows whose elements lie apart.
void untangle(Program& program, const Target& target);

}  // namespace partita
