// SPDX-License-Identifier: Apache-2.0
// Who makes and who reads each tensor of a list of operators that is being changed.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "partita/op.hpp"
#include "partita/status.hpp"

namespace partita {

struct GraphLinks {
  std::map<uint64_t, size_t> producer;  ///< operator that makes the tensor
  std::set<uint64_t> consumed;          ///< tensors that an operator reads
  std::vector<size_t> order;            ///< producers first

  bool from_outside(uint64_t id) const { return !producer.count(id); }
};

/// invalid_graph where there is a cycle.
Result<GraphLinks> link_ops(const std::vector<op>& ops);

/// Calls change(tensor) for every use and the definition of a tensor; false where there is none.
template <class Change>
bool each_use(std::vector<op>& ops, uint64_t id, Change change) {
  bool found = false;
  for (op& o : ops) {
    for (auto* side : {&o.inputs, &o.outputs}) {
      for (logical_tensor& t : *side) {
        if (t.id == id) change(t), found = true;
      }
    }
  }
  return found;
}

/// The tensors by id, each as the use tells that knows its shape.
std::map<uint64_t, logical_tensor> tensors_of(const std::vector<op>& ops);

/// Where a use of a tensor and the operator that makes it tell different strides, those of the latter are taken: inside
/// a graph they say nothing of its values, and dumps of graphs that were changed by hand tell both.
void take_strides_of_producers(std::vector<op>& ops);

/// Strides without gaps, the axes in the order in which they lie in `like`; row-major where that does not say it.
Dims strides_like(const logical_tensor& like, const Dims& dims);

}  // namespace partita
