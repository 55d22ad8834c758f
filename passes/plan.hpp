// SPDX-License-Identifier: Apache-2.0
// Memory of a program.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Places temporaries in one arena by lifetime and finds the in-place pairs.
void plan_memory(Program& program);

}  // namespace partita
