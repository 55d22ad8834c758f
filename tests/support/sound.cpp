// SPDX-License-Identifier: Apache-2.0
// The promises of partitioning, checked against the graph itself.
#include "tests/support/sound.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "src/base/text.hpp"

namespace partita::test {
namespace {

using Ids = std::multiset<uint64_t>;

Ids ids_of(const std::vector<logical_tensor>& tensors) {
  Ids ids;
  for (const logical_tensor& t : tensors) ids.insert(t.id);
  return ids;
}

/// Values that cross the borders of each partition.
struct Borders {
  std::vector<Ids> in, out;
};

Borders borders_of(const FinalGraph& graph, const std::vector<size_t>& partition_of, size_t partitions) {
  Borders borders{std::vector<Ids>(partitions), std::vector<Ids>(partitions)};
  for (const Value& v : graph.values) {
    const bool made = v.producer >= 0;
    const size_t from = made ? partition_of[static_cast<size_t>(v.producer)] : partitions;
    bool leaves = v.uses.empty();
    for (const Use& use : v.uses) {
      const size_t to = partition_of[static_cast<size_t>(use.op)];
      if (to != from) borders.in[to].insert(v.desc.id);
      leaves = leaves || to != from || graph.ops[static_cast<size_t>(use.op)].kind == OpKind::End;
    }
    if (made && leaves) borders.out[from].insert(v.desc.id);
  }
  return borders;
}

}  // namespace

std::string unsoundness(const FinalGraph& graph, const std::vector<Partition>& partitions) {
  std::unordered_map<uint64_t, size_t> index;
  for (size_t i = 0; i < graph.ops.size(); ++i) index.emplace(graph.ops[i].id, i);
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> partition_of(graph.ops.size(), kNone);
  for (size_t p = 0; p < partitions.size(); ++p) {
    int last = -1;
    for (const op& o : partitions[p].ops) {
      const auto at = index.find(o.id);
      if (at == index.end()) return str("partition ", p, " has an operator ", o.id, " that the graph has not");
      size_t& owner = partition_of[at->second];
      if (owner != kNone) return str("op ", o.id, " is in partitions ", owner, " and ", p);
      owner = p;
      const int position = graph.position[at->second];
      if (position < last) return str("op ", o.id, " stands before what it reads");
      last = position;
    }
  }
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (partition_of[i] == kNone) return str("op ", graph.ops[i].id, " is in no partition");
  for (const Value& v : graph.values) {
    if (v.producer < 0) continue;
    for (const Use& use : v.uses)
      if (partition_of[static_cast<size_t>(v.producer)] > partition_of[static_cast<size_t>(use.op)])
        return str("tensor ", v.desc.id, " is made by a later partition than one that reads it");
  }
  const Borders borders = borders_of(graph, partition_of, partitions.size());
  for (size_t p = 0; p < partitions.size(); ++p) {
    if (ids_of(partitions[p].inputs) != borders.in[p]) return str("inputs of partition ", p, " are not what it reads");
    if (ids_of(partitions[p].outputs) != borders.out[p])
      return str("outputs of partition ", p, " are not what others read of it");
  }
  return {};
}

}  // namespace partita::test
