// SPDX-License-Identifier: Apache-2.0
// Products over several heads at once: their axis of heads and columns becomes two, as those see it who stand between.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Where a product's operand has an axis that a step beside it walks as two (a matrix of all heads, reshaped to a batch
/// of them), the product becomes one over a batch, and so do loops between. The values stay where they are in memory.
/// False where there is no such axis, or something between does not follow; the program may be changed in part then.
bool split_products(Program& program);

}  // namespace partita
