// SPDX-License-Identifier: Apache-2.0
// What every command that reads graphs shares: the files, and changes to them before they are used.
#pragma once

#include <string>
#include <vector>

#include "partita/graph.hpp"
#include "src/io/overrides.hpp"
#include "src/io/read_graph.hpp"

namespace CLI {
class App;
}

namespace partita::cli {

struct GraphOptions {
  std::vector<std::string> paths;
  Overrides overrides;
};

/// Adds FILE.. and the overrides. `options` must live until the command line is parsed and the command has run.
void add_graph_options(CLI::App& command, GraphOptions& options, bool one_file = false, bool required = true);
/// Adds --policy=fusion|debug.
void add_policy(CLI::App& command, Policy& policy);

/// The files in the order given; a folder stands for all *.json below it, sorted.
Result<std::vector<std::string>> graph_files(const std::vector<std::string>& paths);

/// A graph ready to finalize, and where its operators stand in the file.
struct LoadedGraph {
  graph value;
  ReadGraph source;
};
Result<LoadedGraph> load_graph(const std::string& file, const Overrides& overrides);

}  // namespace partita::cli
