// SPDX-License-Identifier: Apache-2.0
// The matcher: finds the operators of a pattern in a graph and applies the rules every fusion must keep.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/pattern.hpp"
#include "src/ir/finalize.hpp"

namespace partita {

/// What a pattern found.
struct Match {
  std::vector<int> ops;                                 ///< operator indices in the order they were matched
  std::vector<std::pair<std::string_view, int>> bound;  ///< name -> value
  std::vector<int> ends;  ///< last operator of each chain: their results may be used outside
};

/// Why the best attempt of a pattern at one operator stopped.
struct Refusal {
  int matched = 0;  ///< operators that had matched
  std::string reason;
};

/// Operators claimed so far.
struct Groups {
  std::vector<int> of;                    ///< group of each operator; -1: not claimed yet
  std::vector<std::vector<int>> members;  ///< operators of each group
};

/// Tries `pattern` with its chain starting at operator `start`. On success fills `match`; on failure fills `refusal`
/// where it is not null. Rules kept for every pattern: each operator is in one group; a value between matched operators
/// is not used outside (unless the pattern allows it); no cycle between groups arises. Bounded in time by a limit on
/// attempts.
bool match_at(const FinalGraph& graph, const patterns::Pattern& pattern, int start, const Groups& groups, Match& match,
              Refusal* refusal);

/// Kinds of operators at which the pattern's chain can start.
OpSet start_kinds(const patterns::Pattern& pattern);

/// True where claiming `ops` as one group would make groups depend on each other in a circle.
bool makes_cycle(const FinalGraph& graph, const std::vector<int>& ops, const Groups& groups);

}  // namespace partita
