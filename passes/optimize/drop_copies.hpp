// SPDX-License-Identifier: Apache-2.0
// Copies that move nothing: a reshaped tensor is the same memory.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Takes out loops that copy a tensor to the same places of another buffer: whoever reads the copy reads the tensor,
/// or where the copy leaves the program, whoever makes the tensor makes the copy.
void drop_copies(Program& program);

}  // namespace partita
