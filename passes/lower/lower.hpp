// SPDX-License-Identifier: Apache-2.0
// From operators to steps.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Operators to steps; element-wise work becomes loops, and so do reductions where the target gets generated code.
Result<Program> lower(const Subgraph& graph, const Target& target);

}  // namespace partita
