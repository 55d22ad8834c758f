// SPDX-License-Identifier: Apache-2.0
// Generated maximum poolings that tell where the maxima are, with expressions around them.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

/// For problems with the output `indices`.
const char* refuse_pool_indices(const Problem& problem);
Result<Run> make_pool_indices(const Problem& problem, const Target& target);

}  // namespace partita::jit
