// SPDX-License-Identifier: Apache-2.0
// Expressions around poolings for tests, and poolings against the interpreter.
#pragma once

#include "tests/support/random_problem.hpp"

namespace partita::test {

/// To a pooling of one input and one result: something in front of the windows, behind the results, both or nothing,
/// with operands that are dense, one number a channel, or one in all; sometimes a second result.
void add_pool_expressions(Problem& p, Random& random);

/// The generated row's results against the interpreter's, on guarded memory.
void expect_interpreted(const Problem& p, Random& random, Isa isa);

}  // namespace partita::test
