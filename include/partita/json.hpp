// SPDX-License-Identifier: Apache-2.0
// Graphs as JSON text, in the format of oneDNN Graph's dumps (docs/json_format.md).
#pragma once

#include <string>
#include <string_view>

#include "partita/graph.hpp"

namespace partita {

/// Parses and checks; the graph is not finalized. `file` is only named in messages. Errors give line, op and attribute.
Result<graph> graph_from_json(std::string_view text, std::string_view file = "graph");
/// Reads a file; runtime_error where it cannot be read.
Result<graph> graph_from_json_file(const std::string& path);
/// Stable text: ops in order, attributes sorted by name, 9 digits. Loading it gives an equal graph.
std::string graph_to_json(const graph& g);

}  // namespace partita
