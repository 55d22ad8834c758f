// SPDX-License-Identifier: Apache-2.0
// Drawn operators as a graph, for the targets that run graphs.
#pragma once

#include <optional>
#include <vector>

#include "partita/graph.hpp"
#include "tests/fuzz/target.hpp"

namespace partita::test {

/// Nothing where what was drawn is no graph, which is rare.
inline std::optional<graph> drawn_graph(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops)
    if (!g.add_op(o).ok()) return {};
  if (const Status status = g.finalize(); !status.ok()) stop_unless_empty(status.text());
  return g;
}

}  // namespace partita::test
