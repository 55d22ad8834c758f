// SPDX-License-Identifier: Apache-2.0
// FinalGraph: operators connected by tensor ids, checked, in a fixed topological order; read-only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "partita/op.hpp"
#include "partita/status.hpp"
#include "src/base/attrs.hpp"

namespace partita {

/// One place where a value is read.
struct Use {
  int op;
  int port;
  friend bool operator==(const Use&, const Use&) = default;
};

/// A tensor of the graph: what all its uses together tell, who makes it, who reads it.
struct Value {
  logical_tensor desc;
  int producer = -1;  ///< index of an operator; -1: comes from outside
  int producer_port = 0;
  std::vector<Use> uses;
};

struct FinalGraph {
  std::vector<op> ops;
  std::vector<Attrs> attrs;             ///< of each operator, defaults filled
  std::vector<Value> values;            ///< by first appearance
  std::vector<std::vector<int>> in;     ///< value of each input port of each operator
  std::vector<std::vector<int>> out;
  std::vector<int> order;               ///< operator indices, producers first, lowest index first among the ready
  std::vector<int> position;            ///< inverse of order
};

/// Connects operators that passed verify_op. Errors: invalid_graph with both places where uses disagree, for a second
/// producer of one tensor, for a cycle with the operators on it.
Result<FinalGraph> finalize(std::span<const op> ops, std::span<const Attrs> attrs);

}  // namespace partita
