// SPDX-License-Identifier: Apache-2.0
// CompiledForm: what stands behind a compiled_partition.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "partita/engine.hpp"
#include "passes/partition.hpp"
#include "src/run/executable.hpp"

namespace partita {

/// An executable; or, where shape inputs arrive only at execution, the request to be compiled again with their content.
class CompiledForm {
 public:
  CompiledForm(std::shared_ptr<const Partition> partition, const engine& compiled_for)
      : partition(std::move(partition)), compiled_for(compiled_for) {}

  std::shared_ptr<const Partition> partition;
  engine compiled_for;                           ///< what is compiled later is for the same, whatever stream asks
  std::shared_ptr<const Executable> executable;  ///< null while it waits for shape inputs
  /// The executable for one thread, for whoever has no team; made when it is first needed.
  mutable std::shared_ptr<const Executable> alone;
  mutable std::mutex making_alone;
  std::vector<uint64_t> waits_for;
  std::vector<logical_tensor> given_inputs, given_outputs;  ///< what compile got; empty where there is an executable
  /// The ports: all fields known where there is an executable, else as given.
  const std::vector<logical_tensor>& inputs() const { return executable ? executable->inputs : given_inputs; }
  const std::vector<logical_tensor>& outputs() const { return executable ? executable->outputs : given_outputs; }
  std::string about;  ///< what a line of PARTITA_VERBOSE says of it; empty where nothing is printed
};

}  // namespace partita
