// SPDX-License-Identifier: Apache-2.0
// A graph run as users run it, in the partitions that Partita makes and operator by operator.
#pragma once

#include <string>

#include "partita/graph.hpp"

namespace partita::test {

/// What the partitions of a graph are compared with.
enum class Against : uint8_t {
  references,  ///< their operators' references, within the tolerance of the partition's types
  single_ops   ///< the operators one by one through the kernels of the machine: the same numbers
};

/// Empty where partitions agree with that, and where each operator alone computes what its reference does from the same
/// inputs; otherwise what differs first. `g` is finalized, with input shapes known; `seed` is that of the data.
std::string run_difference(const graph& g, uint64_t seed, Against against);

}  // namespace partita::test
