// SPDX-License-Identifier: Apache-2.0
// The two ways to run a graph that are compared: Partita's partitions, and oneDNN one operator after another.
#pragma once

#include "partita/graph.hpp"
#include "tests/bench/graph_side.hpp"

namespace partita::bench {

/// Partita's partitions, as they are grouped. Tensors between partitions lie as compilation likes.
Result<std::vector<Part>> partita_parts(const graph& g, const GraphInputs& inputs, int threads);

/// How tensors between operators lie on oneDNN's side.
enum class InnerOrder : uint8_t { as_in_graph, channels_last };

struct OneByOne {
  std::vector<Part> parts;
  int own = 0;  ///< operators without primitive, which Partita's kernels do
};
/// Each operator its own primitive, made once with its weights reordered; Partita's kernel alone where oneDNN has none.
Result<OneByOne> onednn_parts(const graph& g, const GraphInputs& inputs, int threads, InnerOrder order);

}  // namespace partita::bench
