// SPDX-License-Identifier: Apache-2.0
// Would a new group of operators and the groups already made depend on each other in a circle?
#include <algorithm>
#include <unordered_set>

#include "passes/match.hpp"

namespace partita {
namespace {

/// Walks from the group's outside producers against the data flow, group by group.
class BackwardWalk {
 public:
  BackwardWalk(const FinalGraph& graph, const std::vector<int>& ops, const Groups& groups)
      : graph_(graph), groups_(groups), members_(ops.begin(), ops.end()) {
    first_ = graph.position[static_cast<size_t>(ops[0])];
    for (int i : ops) first_ = std::min(first_, graph.position[static_cast<size_t>(i)]);
  }

  bool reaches_itself(const std::vector<int>& ops) {
    for (int i : ops) push_producers(i);
    while (!stack_.empty()) {
      const int i = stack_.back();
      stack_.pop_back();
      if (members_.count(i)) return true;
      push_producers(i);
    }
    return false;
  }

 private:
  /// Operators of a claimed group stand or fall together: all their producers count.
  void push_producers(int i) {
    for (int v : graph_.in[static_cast<size_t>(i)]) {
      const int p = graph_.values[static_cast<size_t>(v)].producer;
      if (p < 0) continue;
      if (members_.count(p)) {
        if (!members_.count(i)) stack_.push_back(p);
        continue;
      }
      push(p);
    }
  }

  void push(int p) {
    const int group = groups_.of[static_cast<size_t>(p)];
    if (group < 0) {
      // What stands before the group's first operator cannot read its results.
      if (graph_.position[static_cast<size_t>(p)] > first_ && seen_ops_.insert(p).second) stack_.push_back(p);
      return;
    }
    if (!seen_groups_.insert(group).second) return;
    const auto& all = groups_.members[static_cast<size_t>(group)];
    stack_.insert(stack_.end(), all.begin(), all.end());
  }

  const FinalGraph& graph_;
  const Groups& groups_;
  std::unordered_set<int> members_, seen_ops_, seen_groups_;
  std::vector<int> stack_;
  int first_ = 0;
};

}  // namespace

bool makes_cycle(const FinalGraph& graph, const std::vector<int>& ops, const Groups& groups) {
  return BackwardWalk(graph, ops, groups).reaches_itself(ops);
}

}  // namespace partita
