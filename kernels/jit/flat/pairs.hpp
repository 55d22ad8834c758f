// SPDX-License-Identifier: Apache-2.0
// Pairs: elements of 16 bits of two vectors that follow each other in memory, in one register.
#pragma once

#include "kernels/jit/flat/row_emitter.hpp"

namespace partita::jit {

/// AVX-512: the same with one store where two whole vectors of 16-bit results are 64 bytes, one load where they are of
/// bf16, and of values that are rounded to bf16 two at once; `shape` then says which operands are such pairs.
Lanes in_pairs(const Lanes& lanes, RowShape& shape);

}  // namespace partita::jit
