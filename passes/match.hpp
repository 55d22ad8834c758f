// SPDX-License-Identifier: Apache-2.0
// The matcher: finds the operators of a pattern in a graph and applies the rules every fusion must keep.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/pattern.hpp"
#include "src/ir/finalize.hpp"

namespace partita {

/// What a pattern found.
struct Match {
  std::vector<int> ops;  ///< operator indices in the order they were matched, then what stands between them
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
  std::vector<int> of = {};                    ///< group of each operator; -1: not claimed yet
  std::vector<std::vector<int>> members = {};  ///< operators of each group
  /// Where groups lie in the graph's order: first -> last position, overlapping ones joined.
  std::map<int, int> spans = {};

  explicit Groups(size_t ops) : of(ops, -1) {}
  /// Makes a group of `ops`.
  void claim(const FinalGraph& graph, std::vector<int> ops);
  /// A position at or before `position` that no group lies across: what stands before it depends on nothing behind it.
  int cut_before(int position) const;
};

/// Tries `pattern` with its chain starting at operator `start`. On success fills `match`; on failure fills `refusal`
/// where it is not null. Rules kept for every pattern: each operator is in one group; a value between matched operators
/// is not used by others (unless the pattern allows it; an End may keep it); no cycle between groups arises: operators
/// that stand between matched ones belong to the match where they are bound by memory, and refuse it where they are
/// not. Bounded in time by limits on attempts and on the operators looked at.
bool match_at(const FinalGraph& graph, const patterns::Pattern& pattern, int start, const Groups& groups, Match& match,
              Refusal* refusal);

/// Kinds of operators at which the pattern's chain can start.
OpSet start_kinds(const patterns::Pattern& pattern);

/// True for an input whose content stands for an attribute, and so must be known when a partition is compiled.
bool reads_content(OpKind kind, int port);

/// Operators outside `ops` on a way from one of them to another.
struct Between {
  std::vector<int> ops;     ///< not claimed yet
  bool in_a_group = false;  ///< a group already made lies on such a way
  bool too_many = false;    ///< given up: so many operators lie near
};
Between between(const FinalGraph& graph, const std::vector<int>& ops, const Groups& groups);

}  // namespace partita
