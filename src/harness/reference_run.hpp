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

/// Errors that the values inside a partition may have, put into what operators read: each number is moved by `share` of
/// itself, what is quantized next by `share` of the tensor's root mean square where that is more; up or down by chance.
/// A negative share moves each the other way. Inputs of the partition are exact, but count as much as others in
/// operators that add up, where sums in another order differ by more than their last bits if terms cancel.
struct SmallErrors {
  double share = 0;
  uint64_t seed = 0;
};

struct ReferenceRun {
  InnerValues inner = InnerValues::rounded;
  SmallErrors errors = {};
};

/// The partition's outputs as the references compute them from `inputs` (which hold every input port).
Result<Tensors> run_reference(const Partition& partition, const Given& given, const Tensors& inputs,
                              const ReferenceRun& how = {});

}  // namespace partita
