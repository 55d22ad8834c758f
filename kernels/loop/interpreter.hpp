// SPDX-License-Identifier: Apache-2.0
// Runs loops in plain C++: the flat skeleton and the pooling skeletons with expressions in front and behind.
// The meaning of every expression is what this interpreter computes; generated code is tested against it.
#pragma once

#include "kernels/kernel.hpp"

namespace partita {

const char* refuse_interpreted(const Problem& problem, const Target& target);
Result<Run> make_interpreted(const Problem& problem, const Target& target);

}  // namespace partita
