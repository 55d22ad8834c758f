// SPDX-License-Identifier: Apache-2.0
// Whole graphs as one partition, compiled as users compile them, run, and compared with the references.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "src/compile/compile.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {

/// One graph compiled as one partition.
struct CompiledGraph {
  Partition partition;
  Ports ports;
  Tensors inputs;  ///< repeatable data
  std::shared_ptr<const Executable> executable;

  /// The results; outputs start as 0xff bytes. `scratchpad`: whether the caller gives the memory.
  Tensors run(int threads = 0, bool scratchpad = false) const;
  /// Empty where the results are what the references compute.
  std::string difference(const Tensors& results) const;
  /// The steps, one a line.
  std::string steps() const;
};

/// Fails the test where the text's graph cannot be compiled for `threads` threads. `strides`: of inputs and results
/// that are not to lie row-major.
CompiledGraph compiled_graph(std::string_view text, int threads, uint64_t seed = 1,
                             const std::vector<uint64_t>& constants = {}, const std::map<uint64_t, Dims>& strides = {});

}  // namespace partita::test
