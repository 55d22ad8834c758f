// SPDX-License-Identifier: Apache-2.0
// Runs a partition operator by operator through the references.
#pragma once

#include <map>

#include "passes/specialize.hpp"
#include "src/harness/storage.hpp"

namespace partita {

/// Tensors by id.
using Tensors = std::map<uint64_t, Storage>;

/// The partition's outputs as the references compute them from `inputs` (which hold every input port).
Result<Tensors> run_reference(const Partition& partition, const Given& given, const Tensors& inputs);

}  // namespace partita
