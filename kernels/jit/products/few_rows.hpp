// SPDX-License-Identifier: Apache-2.0
// Generated code for products of a few rows with matrices that are read once: the queries of one token on the keys and
// values of its heads. They wait for memory, and a general product would first bring each matrix into its own order.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_few_rows(const Problem& problem, const Target& target);
Result<Run> make_few_rows(const Problem& problem, const Target& target);

}  // namespace partita::jit
