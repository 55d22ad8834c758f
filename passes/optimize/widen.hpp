// SPDX-License-Identifier: Apache-2.0
// Values of 16 bits that kernels would copy to f32 are made in f32.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// For a program whose steps have picked their kernels: where a loop or a skeleton makes a temporary of 16 or 8 bits
/// that products on f32 copies read (f16 on machines without f16 products), the copy is what is made. It is rounded to
/// the type that it had, so results are the same to the bit.
void widen(Program& program, const Target& target);

}  // namespace partita
