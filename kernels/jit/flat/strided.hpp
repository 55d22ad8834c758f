// SPDX-License-Identifier: Apache-2.0
// Generated code for loops whose operands disagree about the axis along which elements lie next to each other.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_strided(const Problem& problem, const Target& target);
Result<Run> make_strided(const Problem& problem, const Target& target);

}  // namespace partita::jit
