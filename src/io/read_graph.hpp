// SPDX-License-Identifier: Apache-2.0
// Reading a graph with the lines its operators stand on; graph_from_json is this without the lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partita/graph.hpp"

namespace partita {

struct ReadGraph {
  graph value;
  std::vector<int> lines;  ///< of each operator, in the order of graph::ops()
  std::string file;
};

Result<ReadGraph> read_graph(std::string_view text, std::string_view file);
Result<ReadGraph> read_graph_file(const std::string& path);

/// Adds "file:line" to a failure of finalize (or of a later stage) that starts with the place of an operator.
Status with_line(Status status, const ReadGraph& from);

}  // namespace partita
