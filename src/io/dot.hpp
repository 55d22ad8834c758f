// SPDX-License-Identifier: Apache-2.0
// Graphs for a person: Graphviz DOT, and one line an operator.
#pragma once

#include <string>

#include "partita/graph.hpp"

namespace partita {

/// Operators as boxes, tensors as arrows with type and shape; tensors from outside and results as ellipses.
std::string graph_to_dot(const graph& g);

/// "%2 = ReLU(%1: f32[2,3]) -> f32[2,3]"; attributes in braces before the arrow, in the graph's order.
std::string graph_to_text(const graph& g);
std::string op_to_text(const op& o);

}  // namespace partita
