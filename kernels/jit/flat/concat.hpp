// SPDX-License-Identifier: Apache-2.0
// Concatenations in generated code.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_concat(const Problem& problem, const Target& target);
Result<Run> make_concat(const Problem& problem, const Target& target);

}  // namespace partita::jit
