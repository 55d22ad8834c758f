// SPDX-License-Identifier: Apache-2.0
// Executable: a compiled program, ready to run; immutable and shared between threads.
#pragma once

#include <span>

#include "partita/engine.hpp"
#include "partita/status.hpp"
#include "partita/tensor.hpp"
#include "passes/program.hpp"
#include "src/run/kept_constants.hpp"

namespace partita {

struct Executable {
  Program program;
  std::vector<ShapeCheck> checks;
  std::vector<logical_tensor> inputs, outputs;  ///< ports, all fields known
  /// What the constant cache keeps for it; null where it has no constants.
  std::shared_ptr<KeptConstants> kept;
  int threads = 1;  ///< most threads it may run on: scratch was sized for them
  int team = 1;     ///< OpenMP's threads that its primitives count on; 1: it runs on whatever there is
};

/// Binds tensors by id and runs the steps. `scratchpad`: arena_bytes bytes aligned to 64; where it is null, or lies
/// otherwise, they are taken from the stream's allocator. Errors: invalid_arguments, invalid_shape, out_of_memory, and
/// what a kernel answers.
Status run(const Executable& executable, const stream& on, std::span<const tensor> inputs,
           std::span<const tensor> outputs, void* scratchpad);
/// The same with an address for each port, in the ports' order.
Status run(const Executable& executable, const stream& on, std::span<const void* const> inputs,
           std::span<void* const> outputs, void* scratchpad);

}  // namespace partita
