// SPDX-License-Identifier: Apache-2.0
// What partitioning promises of every graph.
#pragma once

#include <string>
#include <vector>

#include "passes/partition.hpp"

namespace partita::test {

/// Empty where every operator is in exactly one partition, partitions read only what those before them make, and ports
/// are the values that cross their borders; otherwise what is wrong.
std::string unsoundness(const FinalGraph& graph, const std::vector<Partition>& partitions);

}  // namespace partita::test
