// SPDX-License-Identifier: Apache-2.0
// Random loop problems, and what generated code makes of them beside what the interpreter does.
#pragma once

#include <string_view>
#include <vector>

#include "tests/support/random_problem.hpp"

namespace partita::test {

/// Random expressions over operands of many types, dense or repeated along axes. Comparisons look at inputs alone, so
/// that no rounding can turn them. One in four draws random numbers.
Problem random_loop(Random& random);

/// Operands and results that lie in any order in memory, with gaps or repeated; copies and weighted sums, whose results
/// are the same to the bit whoever computes them.
Problem random_strided_loop(Random& random);

/// Adds an operand that numbers elements, and draws their random numbers.
ExprBuilder::Value drawn(Problem& loop, Random& random);

/// A dense f32 tensor over the axes of the space that are kept, repeated along the others.
TensorDesc folded_desc(const Dims& space, const std::vector<bool>& kept);

struct FoldLoop {
  Problem problem;
  std::vector<Fold> how;  ///< of each output; none: stored
};
/// Folds of a product over random axes into outputs that keep different ones; sometimes the product is stored too.
FoldLoop random_fold_loop(Random& random);

/// How close results must be.
enum class Closeness : uint8_t {
  equal,   ///< to the bit
  rounded  ///< functions are approximated: some units of the type's precision
};

/// Runs every row of the machine's instruction sets whose name has `rows` in it and that accepts the problem, on random
/// data in guarded memory, and fails the test where it differs from the interpreter or writes beside its results.
/// Returns how many rows ran.
int expect_generated_rows_agree(const Problem& problem, Random& random, Closeness closeness,
                                std::string_view rows = {});

}  // namespace partita::test
