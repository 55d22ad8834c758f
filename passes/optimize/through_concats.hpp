// SPDX-License-Identifier: Apache-2.0
// Element-wise loops behind a concatenation move to its parts.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// f(concat(x, y)) becomes concat(f(x), f(y)), and concat(concat(x, y), z) becomes concat(x, y, z): the tensor between
/// is never written, and the loops may join what makes x and y. Where all that reads it can do so, there are few parts,
/// and nothing behind would take the loop as its expression instead. Comes before the fusing of loops.
void move_through_concats(Program& program);

}  // namespace partita
