// SPDX-License-Identifier: Apache-2.0
// Generated code for flat loops.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_flat(const Problem& problem, const Target& target);
Result<Run> make_flat(const Problem& problem, const Target& target);

}  // namespace partita::jit
