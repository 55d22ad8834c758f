// SPDX-License-Identifier: Apache-2.0
// Links between operators by tensor id, and the order of axes in memory.
#include "src/io/graph_links.hpp"

#include <algorithm>
#include <queue>

#include "src/base/shape.hpp"

namespace partita {

Result<GraphLinks> link_ops(const std::vector<op>& ops) {
  GraphLinks links;
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const logical_tensor& t : ops[i].outputs) links.producer.emplace(t.id, i);
    for (const logical_tensor& t : ops[i].inputs) links.consumed.insert(t.id);
  }
  std::vector<std::vector<size_t>> readers(ops.size());
  std::vector<int> waiting(ops.size(), 0);
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const logical_tensor& t : ops[i].inputs) {
      const auto it = links.producer.find(t.id);
      if (it == links.producer.end()) continue;
      readers[it->second].push_back(i);
      ++waiting[i];
    }
  }
  std::queue<size_t> ready;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  for (; !ready.empty(); ready.pop()) {
    links.order.push_back(ready.front());
    for (size_t reader : readers[ready.front()]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (links.order.size() != ops.size()) return fail(Code::invalid_graph, "the graph has a cycle");
  return links;
}

std::map<uint64_t, logical_tensor> tensors_of(const std::vector<op>& ops) {
  std::map<uint64_t, logical_tensor> tensors;
  for (const op& o : ops) {
    for (const auto* side : {&o.inputs, &o.outputs}) {
      for (const logical_tensor& t : *side) {
        const auto [it, added] = tensors.emplace(t.id, t);
        if (!added && !it->second.shape_known() && t.shape_known()) it->second = t;
      }
    }
  }
  return tensors;
}

void take_strides_of_producers(std::vector<op>& ops) {
  std::map<uint64_t, Dims> made;
  for (const op& o : ops) {
    for (const logical_tensor& t : o.outputs)
      if (t.strides_known()) made.emplace(t.id, t.strides);
  }
  for (op& o : ops) {
    for (logical_tensor& t : o.inputs) {
      const auto it = made.find(t.id);
      if (it != made.end() && t.strides_known() && it->second.size() == t.strides.size()) t.strides = it->second;
    }
  }
}

Dims strides_like(const logical_tensor& like, const Dims& dims) {
  const bool says = like.strides_known() && like.rank() == dims.size() &&
                    std::find(like.strides.begin(), like.strides.end(), 0) == like.strides.end();
  if (!says) return dense_strides(dims);
  const Dims axes = axes_in_memory_order(like.strides), strides = dense_strides(permuted(dims, axes));
  Dims out(dims.size(), 0);
  for (int i = 0; i < dims.size(); ++i) out[static_cast<int>(axes[i])] = strides[i];
  return out;
}

}  // namespace partita
