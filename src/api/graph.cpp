// SPDX-License-Identifier: Apache-2.0
// The C++ interface's graph: checks each operator, then finalizes and partitions.
#include "partita/graph.hpp"

#include "passes/partition.hpp"
#include "src/base/check.hpp"
#include "src/base/guarded.hpp"
#include "src/base/text.hpp"
#include "src/compile/compile.hpp"
#include "src/ir/finalize.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {

Status graph::set_fpmath_mode(FpMath mode, bool apply_to_int) {
  if (finalized())
    return guarded(
        []() -> Status { return fail(Code::invalid_graph, "the graph is finalized, its fpmath mode cannot change"); });
  fpmath_ = mode;
  apply_to_int_ = apply_to_int;
  return {};
}

Status graph::add_op(const op& added) {
  return guarded([&]() -> Status {
    if (finalized())
      return fail(Code::invalid_graph, "the graph is finalized, no operator can be added").at(place_of(added));
    if (!ids_.insert(added.id).second)
      return fail(Code::invalid_graph_op, str("another operator has the id ", added.id)).at(place_of(added));
    Status done = guarded([&]() -> Status {
      if (auto checked = verify_op(added); !checked.ok()) return std::move(checked).take_status().at(place_of(added));
      ops_.push_back(added);
      return {};
    });
    if (!done.ok()) ids_.erase(added.id);
    return done;
  });
}

Status graph::finalize() {
  return guarded([&]() -> Status {
    if (finalized()) return {};
    std::vector<Attrs> attrs;
    for (const op& o : ops_) {
      PT_ASSIGN(Attrs checked, verify_op(o));
      attrs.push_back(std::move(checked));
    }
    PT_ASSIGN(FinalGraph made, partita::finalize(ops_, attrs));
    final_ = std::make_shared<const FinalGraph>(std::move(made));
    return {};
  });
}

Result<std::vector<partition>> graph::get_partitions(Policy policy) const {
  return guarded([&]() -> Result<std::vector<partition>> {
    if (!finalized()) return fail(Code::invalid_graph, "the graph must be finalized before it is partitioned");
    std::vector<partition> partitions;
    // Its last handle gone, a partition takes along what is kept of its constants.
    const auto end = [](const Partition* p) {
      forget_partition(p->id);
      delete p;
    };
    for (Partition& p : partition_graph(*final_, {policy, kind_, fpmath_, apply_to_int_}))
      partitions.emplace_back(std::shared_ptr<const Partition>(new Partition(std::move(p)), end));
    return partitions;
  });
}

}  // namespace partita
