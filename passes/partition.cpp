// SPDX-License-Identifier: Apache-2.0
// Grouping of operators: patterns claim them best first, the rule groups the rest and what is around them.
#include "passes/partition.hpp"

#include <algorithm>
#include <atomic>
#include <queue>

#include "passes/claims.hpp"
#include "src/base/hash.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"

namespace partita {

uint64_t next_id() {
  static std::atomic<uint64_t> last{100000};
  return ++last;
}

namespace {
void try_patterns(const FinalGraph& graph, Claims& claims, std::vector<PatternNote>* notes) {
  for (const auto& pattern : all_patterns()) {
    const OpSet starts = start_kinds(pattern);
    for (int i : graph.order) {
      const OpKind kind = graph.ops[static_cast<size_t>(i)].kind;
      if (claims.groups.of[static_cast<size_t>(i)] >= 0 || !starts.has(kind)) continue;
      Match match;
      Refusal refusal;
      if (match_at(graph, pattern, i, claims.groups, match, notes ? &refusal : nullptr))
        claims.claim(graph, std::move(match.ops), pattern.name);
      else if (notes && refusal.matched > 0)
        notes->push_back({graph.ops[static_cast<size_t>(i)].id, pattern.name, std::move(refusal)});
    }
  }
}

void add_ports(const FinalGraph& graph, const std::vector<int>& ops, const Claims& claims, int group, Partition& p) {
  auto inside = [&](int i) { return i >= 0 && claims.groups.of[static_cast<size_t>(i)] == group; };
  for (int i : ops) {
    for (int v : graph.in[static_cast<size_t>(i)])
      if (const Value& value = graph.values[static_cast<size_t>(v)]; !inside(value.producer))
        p.inputs.push_back(value.desc);
    for (int v : graph.out[static_cast<size_t>(i)]) {
      const Value& value = graph.values[static_cast<size_t>(v)];
      const bool outside = value.uses.empty() || std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& u) {
                             return !inside(u.op) || graph.ops[static_cast<size_t>(u.op)].kind == OpKind::End;
                           });
      if (outside) p.outputs.push_back(value.desc);
    }
  }
}

uint64_t hash_of(const Partition& p) {
  Hasher h;
  for (const op& o : p.ops) {
    h.add(o.id).add(static_cast<uint64_t>(o.kind));
    for (const auto& t : o.inputs) h.add(t.id).add(static_cast<uint64_t>(t.dtype));
    for (const auto& t : o.outputs) h.add(t.id).add(static_cast<uint64_t>(t.dtype));
  }
  for (const Attrs& attrs : p.attrs)
    for (const auto& [key, value] : attrs.all()) h.add(static_cast<uint64_t>(key)).add(text_of(value));
  return h.value();
}

Partition make_partition(const FinalGraph& graph, const Claims& claims, int group, const PartitionSettings& settings) {
  Partition p;
  p.id = next_id();
  p.kind = settings.kind;
  p.fpmath = settings.fpmath;
  p.apply_to_int = settings.apply_to_int;
  std::vector<int> ops = claims.groups.members[static_cast<size_t>(group)];
  std::sort(ops.begin(), ops.end(), [&](int a, int b) {
    return graph.position[static_cast<size_t>(a)] < graph.position[static_cast<size_t>(b)];
  });
  const op* unknown = nullptr;
  bool computes = false;
  for (int i : ops) {
    p.ops.push_back(graph.ops[static_cast<size_t>(i)]);
    p.attrs.push_back(graph.attrs[static_cast<size_t>(i)]);
    const op& o = graph.ops[static_cast<size_t>(i)];
    computes = computes || o.kind != OpKind::End;
    if (o.kind == OpKind::Wildcard) unknown = &o;
  }
  p.supported = computes && !unknown;
  if (!p.supported) p.reason = str(name_of(unknown ? OpKind::Wildcard : OpKind::End), " computes nothing");
  p.pattern = claims.names[static_cast<size_t>(group)];
  add_ports(graph, ops, claims, group, p);
  p.content_hash = hash_of(p);
  return p;
}

}  // namespace

std::vector<int> group_order(const FinalGraph& graph, const Groups& groups) {
  const size_t n = groups.members.size();
  std::vector<int> last(n, 0), waiting(n, 0);
  std::vector<std::vector<int>> readers(n);
  for (size_t g = 0; g < n; ++g)
    for (int i : groups.members[g]) {
      last[g] = std::max(last[g], graph.position[static_cast<size_t>(i)]);
      for (int v : graph.in[static_cast<size_t>(i)]) {
        const int p = graph.values[static_cast<size_t>(v)].producer;
        const int from = p < 0 ? -1 : groups.of[static_cast<size_t>(p)];
        if (from < 0 || from == static_cast<int>(g)) continue;
        readers[static_cast<size_t>(from)].push_back(static_cast<int>(g));
        ++waiting[g];
      }
    }
  auto later = [&](int a, int b) { return last[static_cast<size_t>(a)] > last[static_cast<size_t>(b)]; };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  for (size_t g = 0; g < n; ++g)
    if (waiting[g] == 0) ready.push(static_cast<int>(g));
  std::vector<int> order;
  while (!ready.empty()) {
    const int g = ready.top();
    ready.pop();
    order.push_back(g);
    for (int r : readers[static_cast<size_t>(g)])
      if (--waiting[static_cast<size_t>(r)] == 0) ready.push(r);
  }
  return order;
}

std::vector<Partition> partition_graph(const FinalGraph& graph, const PartitionSettings& settings,
                                       std::vector<PatternNote>* notes) {
  Claims claims(graph.ops.size());
  if (settings.policy == Policy::fusion) try_patterns(graph, claims, notes);
  for (int i : graph.order)
    if (claims.groups.of[static_cast<size_t>(i)] < 0) claims.claim(graph, {i}, kSingleOp);
  if (settings.policy == Policy::fusion) claims = grouped_by_rule(graph, claims, notes);
  std::vector<Partition> partitions;
  for (int g : group_order(graph, claims.groups)) partitions.push_back(make_partition(graph, claims, g, settings));
  return partitions;
}

Partition whole_partition(const FinalGraph& graph, const PartitionSettings& settings) {
  Claims claims(graph.ops.size());
  claims.claim(graph, graph.order, "whole");
  return make_partition(graph, claims, 0, settings);
}

}  // namespace partita
