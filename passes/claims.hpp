// SPDX-License-Identifier: Apache-2.0
// Groups under construction: patterns claim operators first (passes/partition.cpp), the rule groups what they left over
// (passes/rule.cpp).
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/match.hpp"
#include "passes/partition.hpp"

namespace partita {

struct Claims {
  Groups groups;
  std::vector<std::string_view> names;  ///< of each group: the pattern, or what the rule found

  explicit Claims(size_t ops) : groups(ops) {}
  void claim(const FinalGraph& graph, std::vector<int> ops, std::string_view name) {
    groups.claim(graph, std::move(ops));
    names.push_back(name);
  }
};

inline constexpr std::string_view kSingleOp = "single_op";
/// In notes: the rule, in place of a pattern.
inline constexpr std::string_view kRule = "by rule";

/// Groups with producers first; among the ready the one whose last operator comes first. Every operator is claimed.
std::vector<int> group_order(const FinalGraph& graph, const Groups& groups);

/// Most operators that the rule puts into one group: passes over its program take time that grows with the square,
/// which is some milliseconds here. How much one walk over memory may do is up to fuse_loops.
inline constexpr size_t kRuleLimit = 512;

/// What groups are called that the rule makes, and what such a group has.
struct RuleName {
  OpSet kinds;  ///< the first entry with one of the group's operators names it
  std::string_view name, text;
};
std::span<const RuleName> rule_names();

/// Joins groups along the values between them: whatever is bound by memory goes with what makes its input, or, where
/// nothing is bound by arithmetic before it, with the only group that reads its results. Takes every operator claimed,
/// single ones too; patterns stay whole. Takes time linear in the graph's size but for the order of groups.
Claims grouped_by_rule(const FinalGraph& graph, const Claims& claims, std::vector<PatternNote>* notes);

}  // namespace partita
