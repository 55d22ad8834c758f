// SPDX-License-Identifier: Apache-2.0
// From an expression to lane operations.
#pragma once

#include "kernels/jit/code/lanes.hpp"
#include "kernels/problem.hpp"
#include "src/base/cpu.hpp"

namespace partita::jit {

/// Null where every instruction has lane operations, otherwise the reason.
const char* refuse_expansion(const Expr& expr, const Problem& problem);
/// The same for an expression in front of a skeleton or behind it, where kernels do not tell where an element is.
const char* refuse_placeless(const Expr& expr, const Problem& problem);

/// Same meaning as the interpreter's, for code with instructions of `isa`; only where refuse_expansion has no reason.
/// `skeleton_is_rounded`: see without_needless_casts.
Lanes expanded(const Expr& expr, const Problem& problem, Isa isa, bool skeleton_is_rounded = false);

/// Of a front expression over the problem's inputs; its result is stored as f32, as output 0.
Lanes expanded_front(Expr front, const Problem& problem, Isa isa);

}  // namespace partita::jit
