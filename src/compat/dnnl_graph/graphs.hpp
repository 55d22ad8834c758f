// SPDX-License-Identifier: Apache-2.0
// The graph handle.
#pragma once

#include <unordered_set>
#include <vector>

#include "partita/graph.hpp"
#include "src/compat/dnnl_graph/abi.hpp"

struct dnnl_graph_graph {
  partita::graph value;
  uint64_t id;                                 ///< names the files of dumps
  std::unordered_set<uint64_t> ids;            ///< of the operators
  std::vector<partita::partition> partitions;  ///< of the last call of filter
};
