// SPDX-License-Identifier: Apache-2.0
// GraphTensors: the memory of a graph under way, and partitions compiled against it.
#pragma once

#include <vector>

#include "partita/graph.hpp"
#include "src/harness/reference_run.hpp"

namespace partita {

/// A partition compiled for the tensors of a graph, with memory at every port.
struct BoundPartition {
  compiled_partition compiled;
  std::vector<logical_tensor> given_in, given_out;  ///< what the compilation was given
  std::vector<tensor> constants;
  std::vector<tensor> inputs, outputs;
  double compile_ms = 0;

  /// Of inputs and outputs, each once.
  size_t bytes() const;
};

/// Holds graph inputs and the results of the partitions bound so far. Partitions are bound in the graph's order.
class GraphTensors {
 public:
  /// `graph` must outlive this.
  explicit GraphTensors(const FinalGraph& graph) : graph_(graph) {}

  /// Gives every graph input memory and repeatable content, and so the results of each Wildcard, which nobody computes.
  /// invalid_shape where the shape of one is not known.
  Status fill_inputs(uint64_t seed);
  /// Compiles for the tensors that are there and gives the results memory. `open`: results that an operator reads lie
  /// as compilation likes, whatever the graph says.
  Result<BoundPartition> bind(const partition& p, const engine& on, bool open = false);
  void release(uint64_t id) { tensors_.erase(id); }
  const Tensors& all() const { return tensors_; }

 private:
  std::vector<tensor> known_content(const partition& p) const;
  bool is_read(uint64_t id) const;

  const FinalGraph& graph_;
  Tensors tensors_;
  std::vector<uint64_t> filled_;  ///< ids of graph inputs, sorted
};

/// Milliseconds of a clock that never goes back.
double now_ms();

}  // namespace partita
