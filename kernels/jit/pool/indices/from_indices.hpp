// SPDX-License-Identifier: Apache-2.0
// Generated gradients of maximum poolings from indices, with expressions around them.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_pool_from_indices(const Problem& problem, const Target& target);
Result<Run> make_pool_from_indices(const Problem& problem, const Target& target);

}  // namespace partita::jit
