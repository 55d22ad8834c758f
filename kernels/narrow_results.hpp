// SPDX-License-Identifier: Apache-2.0
// Elementary functions whose results are rounded to 16 bits or fewer at once need not be computed to the last bit of
// f32.
#pragma once

#include "kernels/problem.hpp"

namespace partita {

/// Bits of the `imm` of such a function: this, and that its argument is at most 0, or NaN.
inline constexpr int32_t kNarrowResult = 1, kNotPositive = 2;

/// Whether the instruction is an elementary function: one whose accuracy is a choice of the kernel.
bool is_elementary(ExprOp op);
/// Whether it is one that need not be computed to the last bit of f32.
bool is_narrow_function(const Instr& in);

/// Marks the elementary functions of the loop that end in narrow outputs only, on ways that keep the size of a relative
/// error. Done for each operator alone, before loops are joined, so that fusing changes no result.
void mark_narrow_results(Problem& loop);
/// Whether the results of an operator are all rounded to 16 bits or fewer (Problem::narrow).
bool has_narrow_results(const Problem& problem);

}  // namespace partita
