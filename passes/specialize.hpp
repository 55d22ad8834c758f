// SPDX-License-Identifier: Apache-2.0
// specialize: a partition's operators for concrete tensors, with every shape inferred and checked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "partita/status.hpp"
#include "partita/tensor.hpp"
#include "passes/partition.hpp"
#include "src/ir/subgraph.hpp"

namespace partita {

/// What a compile request gives: a logical tensor for every port, and the content of constant inputs where known.
struct Given {
  std::span<const logical_tensor> inputs, outputs;
  std::span<const tensor> constants;
};

/// The subgraph, or - `waits_for` not empty - the ids of shape inputs whose content must be known first because
/// neither constants nor given output dims tell it; then shapes that depend on them are not inferred.
struct Specialized {
  Subgraph graph;
  std::vector<uint64_t> waits_for;
};

/// Errors: invalid_arguments (a port without tensor, dtype or layout undefined, unknown input dims), invalid_shape.
Result<Specialized> specialize(const Partition& partition, const Given& given);

}  // namespace partita
