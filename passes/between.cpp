// SPDX-License-Identifier: Apache-2.0
// What lies between the operators of a new group: it must join the group, or groups would depend on each other in a
// circle. Both walks stay near the group and give up after a fixed number of operators, so that a graph is partitioned
// in time linear in its size.
#include <algorithm>
#include <unordered_set>

#include "passes/match.hpp"

namespace partita {
namespace {

/// Operators looked at before a group is refused.
constexpr size_t kMaxOperators = 4096;

/// Operators and groups around a new group. Operators of a claimed group stand or fall together.
class Neighbourhood {
 public:
  Neighbourhood(const FinalGraph& graph, const std::vector<int>& ops, const Groups& groups)
      : graph_(graph), groups_(groups), members_(ops.begin(), ops.end()) {
    int first = graph.position[static_cast<size_t>(ops[0])];
    for (int i : ops) first = std::min(first, graph.position[static_cast<size_t>(i)]);
    cut_ = groups.cut_before(first);
  }

  Between find(const std::vector<int>& ops) {
    for (int i : ops) push_producers(i);
    while (const int* i = next()) push_producers(*i);
    ancestors_ = std::move(seen_);
    seen_.clear();
    backwards_ = false;
    for (int i : ops) push_readers(i);
    while (const int* i = next()) push_readers(*i);
    Between found;
    found.too_many = looked_at_ > kMaxOperators;
    for (int i : seen_)
      if (groups_.of[static_cast<size_t>(i)] >= 0)
        found.in_a_group = true;
      else
        found.ops.push_back(i);
    std::sort(found.ops.begin(), found.ops.end());
    return found;
  }

 private:
  /// The next operator to look at; null: none, or enough looked at.
  const int* next() {
    if (stack_.empty() || ++looked_at_ > kMaxOperators) {
      stack_.clear();
      return nullptr;
    }
    now_ = stack_.back();
    stack_.pop_back();
    return &now_;
  }

  void push_producers(int i) {
    for (int v : graph_.in[static_cast<size_t>(i)]) push(graph_.values[static_cast<size_t>(v)].producer);
  }

  void push_readers(int i) {
    for (int v : graph_.out[static_cast<size_t>(i)])
      for (const Use& use : graph_.values[static_cast<size_t>(v)].uses) push(use.op);
  }

  void push(int i) {
    if (i < 0 || members_.count(i) || seen_.count(i)) return;
    // What stands before the cut cannot read the new group's results; on the way forward only ancestors count.
    if (backwards_ ? graph_.position[static_cast<size_t>(i)] < cut_ : !ancestors_.count(i)) return;
    const int group = groups_.of[static_cast<size_t>(i)];
    if (group < 0) {
      seen_.insert(i);
      stack_.push_back(i);
      return;
    }
    for (int k : groups_.members[static_cast<size_t>(group)]) {
      if (stack_.size() > kMaxOperators) return;
      if (seen_.insert(k).second) stack_.push_back(k);
    }
  }

  const FinalGraph& graph_;
  const Groups& groups_;
  std::unordered_set<int> members_, seen_, ancestors_;
  std::vector<int> stack_;
  size_t looked_at_ = 0;
  int now_ = 0, cut_ = 0;
  bool backwards_ = true;
};

}  // namespace

void Groups::claim(const FinalGraph& graph, std::vector<int> ops) {
  int first = static_cast<int>(of.size()), last = 0;
  for (int i : ops) {
    of[static_cast<size_t>(i)] = static_cast<int>(members.size());
    first = std::min(first, graph.position[static_cast<size_t>(i)]);
    last = std::max(last, graph.position[static_cast<size_t>(i)]);
  }
  members.push_back(std::move(ops));
  auto at = spans.upper_bound(first);
  if (at != spans.begin() && std::prev(at)->second > first) --at;
  while (at != spans.end() && at->first < last) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    at = spans.erase(at);
  }
  if (first < last) spans[first] = last;
}

int Groups::cut_before(int position) const {
  const auto behind = spans.lower_bound(position);  // the spans before it start before `position`
  if (behind == spans.begin()) return position;
  const auto& [first, last] = *std::prev(behind);
  return last >= position ? first : position;
}

Between between(const FinalGraph& graph, const std::vector<int>& ops, const Groups& groups) {
  return Neighbourhood(graph, ops, groups).find(ops);
}

}  // namespace partita
