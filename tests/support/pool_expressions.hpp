// SPDX-License-Identifier: Apache-2.0
// Expressions around poolings for tests, and poolings against the interpreter.
#pragma once

#include "tests/support/random_problem.hpp"

namespace partita::test {

/// What operands of expressions are: dense, one number a channel, or one in all; or one a channel and image, and one a
/// cell, too.
enum class PoolOperands : uint8_t { common, all };

/// To a pooling of one result: something in front of the windows, behind the results, both or nothing, with operands;
/// sometimes a second result.
void add_pool_expressions(Problem& p, Random& random, PoolOperands operands = PoolOperands::common);

/// The generated row's results against the interpreter's, on guarded memory.
void expect_interpreted(const Problem& p, Random& random, Isa isa);

}  // namespace partita::test
