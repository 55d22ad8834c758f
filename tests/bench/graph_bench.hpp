// SPDX-License-Identifier: Apache-2.0
// partita_bench graphs: whole graphs, Partita's partitions against oneDNN one operator after another.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/machine.hpp"
#include "tests/bench/measure.hpp"

namespace CLI {
class App;
}

namespace partita::bench {

/// What was found out about one graph.
struct GraphRow {
  std::string group, name;
  int ops = 0;
  int partitions = 0;
  int own = 0;  ///< operators that oneDNN has no primitive for: Partita's kernels stand in on its side
  Timing partita{}, onednn{};
  bool channels_last = false;                      ///< oneDNN was faster with channels last between operators
  size_t partita_scratch = 0, onednn_scratch = 0;  ///< Peak bytes beside inputs and results.
  std::string error{};                             ///< nothing was measured

  std::optional<double> times_onednn() const {
    if (partita.turns == 0 || onednn.turns == 0) return {};
    return onednn.median / partita.median;
  }
};

struct GraphSettings {
  double seconds = 0.15;  ///< a contender
  int threads = 1;
  bool processor_time = false;  ///< as in MeasureOptions
};

/// Problems are told in GraphRow::error.
GraphRow run_graph(const std::string& file, const std::string& name, const GraphSettings& settings);

std::string graph_heading();
std::string graph_line(const GraphRow& row);
/// Means and worst of each group.
std::string graph_summary(std::span<const GraphRow> rows);
std::string graphs_json(const Machine& machine, std::span<const GraphRow> rows);

/// Adds the command `graphs`; when it was given, `exit_code` tells how it went.
void add_graphs(CLI::App& app, std::optional<int>& exit_code);

}  // namespace partita::bench
