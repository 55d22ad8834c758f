// SPDX-License-Identifier: Apache-2.0
// Random graphs of element-wise, moving, quantizing and pooling operators: several readers a value, broadcast operands,
// mixed types, inputs in any layout.
#pragma once

#include <cstdint>
#include <vector>

#include "partita/op.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {

struct RandomGraph {
  std::vector<op> ops;
  std::vector<uint64_t> kept;  ///< inner values that shall be outputs too
};

/// `ops` operators (ids 1, 2, ..).
RandomGraph random_graph(Random& random, int ops);

}  // namespace partita::test
