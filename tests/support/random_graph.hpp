// SPDX-License-Identifier: Apache-2.0
// Random graphs: several readers a value, broadcast operands, mixed types, inputs in any layout.
#pragma once

#include <cstdint>
#include <vector>

#include "partita/graph.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {

struct RandomGraph {
  std::vector<op> ops;
  std::vector<uint64_t> kept;  ///< inner values that shall be outputs too
};

/// `ops` element-wise, moving, quantizing and pooling operators (ids 1, 2, ..): what partitions compute of them has the
/// bits that the operators have one by one, but for averages.
RandomGraph random_graph(Random& random, int ops);

/// About as many, and among them softmax, norms, reductions, gradients that sum and interpolation, in both directions.
/// Statistics and results of softmax are made where gradients read them, so that numbers stay tame.
RandomGraph random_training_graph(Random& random, int ops);

/// A finalized graph of the operators, or what is wrong with one of them.
Result<graph> finalized(const std::vector<op>& ops);

}  // namespace partita::test
