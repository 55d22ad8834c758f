// SPDX-License-Identifier: Apache-2.0
// Connecting operators by tensor ids; entry: finalize().
#include "src/ir/finalize.hpp"

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

/// What two uses of one tensor say differently, and what each says.
struct Disagreement {
  std::string what, here, there;
};

/// Takes over what `seen` knows more than `known`.
std::optional<Disagreement> merge(logical_tensor& known, const logical_tensor& seen) {
  const auto differs = [&](std::string what) { return Disagreement{std::move(what), seen.text(), known.text()}; };
  if (known.dtype != seen.dtype) return differs("a different data type");
  if (known.rank_known && seen.rank_known) {
    if (known.rank() != seen.rank()) return differs("a different rank");
    for (int d = 0; d < known.rank(); ++d)
      if (seen.dims[d] != kUnknownDim && known.dims[d] != kUnknownDim && seen.dims[d] != known.dims[d])
        return differs("a different shape");
    for (int d = 0; d < known.rank(); ++d)
      if (known.dims[d] == kUnknownDim) known.dims[d] = seen.dims[d];
  } else if (seen.rank_known) {
    known.rank_known = true;
    known.dims = seen.dims;
  }
  if (known.layout == Layout::opaque && seen.layout == Layout::opaque && known.layout_id != seen.layout_id)
    return Disagreement{"a different layout id", str(seen.layout_id), str(known.layout_id)};
  if (known.strides_known() && seen.strides_known() && known.strides != seen.strides)
    return Disagreement{"different strides", str("[", text_of(seen.strides), "]"),
                        str("[", text_of(known.strides), "]")};
  const bool more = (known.layout == Layout::undef && seen.layout != Layout::undef) ||
                    (!known.strides_known() && seen.strides_known());
  if (more) {
    known.layout = seen.layout;
    known.strides = seen.strides;
    known.layout_id = seen.layout_id;
  }
  if (known.property == Property::undef) known.property = seen.property;
  if (seen.property != Property::undef && seen.property != known.property)
    return Disagreement{"a different property", str(name_of(seen.property)), str(name_of(known.property))};
  return std::nullopt;
}

class Connector {
 public:
  Connector(std::span<const op> ops, std::span<const Attrs> attrs) {
    graph_.ops.assign(ops.begin(), ops.end());
    graph_.attrs.assign(attrs.begin(), attrs.end());
  }

  Result<FinalGraph> run() {
    PT_TRY(connect());
    PT_TRY(sort());
    return std::move(graph_);
  }

 private:
  Status connect() {
    const int n = static_cast<int>(graph_.ops.size());
    graph_.in.resize(graph_.ops.size());
    graph_.out.resize(graph_.ops.size());
    for (int i = 0; i < n; ++i) {
      const op& o = graph_.ops[static_cast<size_t>(i)];
      for (int side = 0; side < 2; ++side) {
        const auto& tensors = side == 0 ? o.inputs : o.outputs;
        for (int port = 0; port < static_cast<int>(tensors.size()); ++port)
          PT_TRY(visit(i, port, side == 1, tensors[static_cast<size_t>(port)]).at(place_of(o)));
      }
    }
    return {};
  }

  Status visit(int op_index, int port, bool output, const logical_tensor& t) {
    const auto [found, added] = by_id_.try_emplace(t.id, static_cast<int>(graph_.values.size()));
    const int v = found->second;
    if (added) {
      graph_.values.push_back({.desc = t, .producer = -1, .producer_port = 0, .uses = {}});
      first_seen_.push_back(op_index);
    }
    Value& value = graph_.values[static_cast<size_t>(v)];
    if (!added)
      if (const std::optional<Disagreement> d = merge(value.desc, t))
        return fail(
            Code::invalid_graph,
            str("tensor ", t.id, " has ", d->what, " here (", d->here, ") than in ",
                place_of(graph_.ops[static_cast<size_t>(first_seen_[static_cast<size_t>(v)])]), " (", d->there, ")"));
    if (!output) {
      value.uses.push_back({op_index, port});
      graph_.in[static_cast<size_t>(op_index)].push_back(v);
      return {};
    }
    if (value.producer >= 0)
      return fail(Code::invalid_graph, str("tensor ", t.id, " is produced a second time, the first producer is ",
                                           place_of(graph_.ops[static_cast<size_t>(value.producer)])));
    value.producer = op_index;
    value.producer_port = port;
    graph_.out[static_cast<size_t>(op_index)].push_back(v);
    return {};
  }

  /// Kahn's algorithm with the lowest ready index first.
  Status sort() {
    const size_t n = graph_.ops.size();
    std::vector<int> waiting(n, 0);
    for (size_t i = 0; i < n; ++i)
      for (int v : graph_.in[i]) waiting[i] += graph_.values[static_cast<size_t>(v)].producer >= 0;
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < n; ++i)
      if (waiting[i] == 0) ready.push(static_cast<int>(i));
    graph_.position.assign(n, -1);
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      graph_.position[static_cast<size_t>(i)] = static_cast<int>(graph_.order.size());
      graph_.order.push_back(i);
      for (int v : graph_.out[static_cast<size_t>(i)])
        for (const Use& use : graph_.values[static_cast<size_t>(v)].uses)
          if (--waiting[static_cast<size_t>(use.op)] == 0) ready.push(use.op);
    }
    if (graph_.order.size() == n) return {};
    return fail(Code::invalid_graph, str("the graph has a cycle: ", cycle_text()));
  }

  /// One cycle: walk from any unplaced operator to unplaced producers until one repeats.
  std::string cycle_text() const {
    size_t start = 0;
    while (graph_.position[start] >= 0) ++start;
    std::vector<int> path, seen_at(graph_.ops.size(), -1);
    int i = static_cast<int>(start);
    while (seen_at[static_cast<size_t>(i)] < 0) {
      seen_at[static_cast<size_t>(i)] = static_cast<int>(path.size());
      path.push_back(i);
      for (int v : graph_.in[static_cast<size_t>(i)]) {
        const int p = graph_.values[static_cast<size_t>(v)].producer;
        if (p >= 0 && graph_.position[static_cast<size_t>(p)] < 0) {
          i = p;
          break;
        }
      }
    }
    std::vector<std::string> names;
    for (size_t k = static_cast<size_t>(seen_at[static_cast<size_t>(i)]); k < path.size(); ++k)
      names.push_back(place_of(graph_.ops[static_cast<size_t>(path[k])]));
    constexpr size_t kShown = 8;
    if (names.size() > kShown) names.resize(kShown, "..");
    std::reverse(names.begin(), names.end());
    return join(names, " -> ");
  }

  FinalGraph graph_;
  std::unordered_map<uint64_t, int> by_id_;
  std::vector<int> first_seen_;  // operator that named value v first
};

}  // namespace

Result<FinalGraph> finalize(std::span<const op> ops, std::span<const Attrs> attrs) {
  return Connector(ops, attrs).run();
}

}  // namespace partita
