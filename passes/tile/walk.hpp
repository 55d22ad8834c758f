// SPDX-License-Identifier: Apache-2.0
// Walk: the space a step walks over, and how its operands lie in it.
#pragma once

#include <optional>
#include <vector>

#include "kernels/problem.hpp"

namespace partita {

struct Walk {
  Dims space;
  std::vector<bool> free;  ///< of each axis: parts of the walk along it do not depend on each other
  /// Of each operand, for each of its axes: the axis of the space, or -1 where it does not move with any.
  std::vector<std::vector<int>> in, out;
};

/// Nothing for steps whose walk is not known.
std::optional<Walk> walk_of(const Problem& problem);

}  // namespace partita
