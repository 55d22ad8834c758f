// SPDX-License-Identifier: Apache-2.0
// PreparedGraph: a graph with every partition compiled and all memory in place, to be executed again and again.
#pragma once

#include <memory>
#include <vector>

#include "partita/graph.hpp"
#include "src/harness/graph_tensors.hpp"

namespace partita {

class PreparedGraph {
 public:
  struct Part {
    partition group;
    BoundPartition bound;  ///< empty where the partition is not supported
  };

  /// `g` may be finalized already. threads 0: as many as OpenMP gives. Errors are those of finalize and compile.
  static Result<PreparedGraph> make(graph g, Policy policy, int threads, uint64_t seed = 1,
                                    const engine& on = engine());

  /// Runs all partitions in order; results overwrite those of the execution before.
  Status execute();
  const std::vector<Part>& parts() const { return parts_; }
  /// Read and written by one execution, each partition's ports once.
  size_t bytes() const;

 private:
  PreparedGraph(graph g, int threads, const engine& on);

  std::unique_ptr<graph> graph_;  ///< keeps its address: tensors_ refers to its final form
  engine engine_;
  stream stream_;
  GraphTensors tensors_;
  std::vector<Part> parts_;
  Storage scratch_;
};

}  // namespace partita
