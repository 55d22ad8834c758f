// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings behind which operators only choose (ReLU's gradient): elements of 16 bits need not be
// converted.
#pragma once

#include <optional>
#include <vector>

#include "kernels/jit/pool/plan.hpp"

namespace partita::jit {

/// A result is the gradient where all of these operands are positive, else zero.
using PoolChoice = std::vector<int>;

/// Of each result, also of what is folded; absent where something else is computed.
std::optional<std::vector<PoolChoice>> choices_of(const PoolPlan& plan, const Problem& problem);

}  // namespace partita::jit
