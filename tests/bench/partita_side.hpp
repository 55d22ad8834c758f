// SPDX-License-Identifier: Apache-2.0
// A net compiled by Partita, with all memory an execution needs.
#pragma once

#include <string>
#include <vector>

#include "partita/engine.hpp"
#include "partita/partition.hpp"
#include "tests/bench/net.hpp"

namespace partita::bench {

class PartitaSide {
 public:
  /// Partitions and compiles. `inputs` are in the order of the net's inputs and are not owned.
  static Result<PartitaSide> make(const Net& net, std::span<const Memory> inputs, int threads);

  /// Runs every partition once, each with a scratchpad of the caller's.
  Status run() const;

  int partitions() const { return static_cast<int>(parts_.size()); }
  /// Memory beside inputs and outputs: values between partitions, and scratch of the hungriest.
  size_t scratch_bytes() const;
  /// Names of the kernels that run, in order.
  std::vector<std::string> kernels() const;
  /// In the order of the net's outputs.
  const Memory& output(size_t i) const { return owned_[outputs_[i]]; }

 private:
  struct Part {
    compiled_partition compiled;
    std::vector<tensor> inputs, outputs;
  };

  PartitaSide(const engine& on, int threads) : stream_(on, threads) {}
  Status add(const partition& group, const Net& net, std::vector<void*>& places);

  stream stream_;
  std::vector<Part> parts_;
  std::vector<Memory> owned_;
  std::vector<size_t> outputs_;                 ///< places in owned_
  std::vector<std::pair<Value, size_t>> made_;  ///< a value that a partition makes, and its place in owned_
  Memory scratch_;
};

}  // namespace partita::bench
