// SPDX-License-Identifier: Apache-2.0
// Graphs as short text for tests:
//   %2 = MatMul(%0: f32[4,8], %1: f32[8,4]) {transpose_b=false}; %3: bf16 = TypeCast(%2)
// Tensors are numbered; a type is told once (an output without type has the type of the operator's first input, an
// unknown shape); operators get the ids 1, 2, .. in order; `;` or a line end separates them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "partita/graph.hpp"

namespace partita::test {

/// Operators as written, unchecked. Aborts with a message where the text itself is malformed.
std::vector<op> ops_of(std::string_view text);

/// A graph of the operators; the first error of add_op.
Result<graph> graph_of(std::string_view text);

/// A finalized graph; fails the test where it cannot be made.
graph final_graph_of(std::string_view text);

/// "[pattern: 1,2] [single_op: 3]": patterns and operator ids of the partitions, in order.
std::string partition_text(std::string_view text);

/// "[2,3]", as dims and lists of attributes are written.
std::string list_of(std::span<const int64_t> list);

}  // namespace partita::test
