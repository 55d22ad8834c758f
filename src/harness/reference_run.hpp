// SPDX-License-Identifier: Apache-2.0
// Runs a partition operator by operator through the references.
#pragma once

#include <map>

#include "passes/specialize.hpp"
#include "src/harness/storage.hpp"

namespace partita {

/// Tensors by id.
using Tensors = std::map<uint64_t, Storage>;

/// What the references make of tensors inside the partition.
enum class InnerValues : uint8_t {
  rounded,  ///< each is rounded to its own type
  wide,     ///< floats of 16 bits or fewer stay f32, as where a product's result goes on in registers
};

/// The partition's outputs as the references compute them from `inputs` (which hold every input port).
Result<Tensors> run_reference(const Partition& partition, const Given& given, const Tensors& inputs,
                              InnerValues inner = InnerValues::rounded);

}  // namespace partita
