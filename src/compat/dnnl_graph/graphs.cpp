// SPDX-License-Identifier: Apache-2.0
// Graphs: collecting operators, finalizing, partitioning.
#include "src/compat/dnnl_graph/graphs.hpp"

#include <memory>

#include "passes/partition.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/dump.hpp"
#include "src/compat/dnnl_graph/host.hpp"
#include "src/compat/dnnl_graph/ops.hpp"
#include "src/compat/dnnl_graph/partitions.hpp"

using namespace partita;
using namespace partita::abi;

namespace {

Status create(dnnl_graph_graph_t* made, dnnl_engine_kind_t kind, FpMath mode) {
  PT_TRY(need({{"graph", made}}));
  *made = new dnnl_graph_graph{graph(static_cast<EngineKind>(kind), mode), next_id(), {}, {}};
  return {};
}

Status check_not_final(const dnnl_graph_graph& g, const char* what) {
  return g.value.finalized() ? fail(Code::invalid_graph, str("the graph is finalized, ", what)) : Status();
}

}  // namespace

dnnl_status_t dnnl_graph_graph_create(dnnl_graph_graph_t* made, dnnl_engine_kind_t engine_kind) {
  return answer_of([&] { return create(made, engine_kind, host::default_math_mode()); });
}

dnnl_status_t dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph_t* made, dnnl_engine_kind_t engine_kind,
                                                       dnnl_fpmath_mode_t mode) {
  return answer_of([&] { return create(made, engine_kind, static_cast<FpMath>(mode)); });
}

dnnl_status_t dnnl_graph_graph_destroy(dnnl_graph_graph_t g) {
  delete g;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t g, dnnl_fpmath_mode_t mode, int apply_to_int) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}}));
    return g->value.set_fpmath_mode(static_cast<FpMath>(mode), apply_to_int != 0);
  });
}

dnnl_status_t dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t g, dnnl_fpmath_mode_t* mode, int* apply_to_int) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}}));
    PT_TRY(check_not_final(*g, "its math mode is read before"));
    if (mode) *mode = static_cast<dnnl_fpmath_mode_t>(g->value.fpmath_mode());
    if (apply_to_int) *apply_to_int = g->value.fpmath_apply_to_int();
    return {};
  });
}

dnnl_status_t dnnl_graph_add_op(dnnl_graph_graph_t g, dnnl_graph_op_t op) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}, {"op", op}}));
    PT_TRY(check_not_final(*g, "no operator can be added"));
    if (!g->ids.insert(op->value.id).second) return {};  // clients add an operator twice and expect success
    Status added = g->value.add_op(op->value);
    if (!added.ok()) g->ids.erase(op->value.id);
    return added;
  });
}

dnnl_status_t dnnl_graph_graph_finalize(dnnl_graph_graph_t g) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}}));
    return g->value.finalize();
  });
}

dnnl_status_t dnnl_graph_graph_is_finalized(dnnl_graph_graph_t g, uint8_t* finalized) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}, {"finalized", finalized}}));
    *finalized = g->value.finalized();
    return {};
  });
}

dnnl_status_t dnnl_graph_graph_filter(dnnl_graph_graph_t g, dnnl_graph_partition_policy_t policy) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}}, Code::invalid_graph));
    if (!g->value.finalized()) return fail(Code::invalid_graph, "the graph must be finalized before it is partitioned");
    g->partitions.clear();
    if (dumps(Dump::graph)) dump_graph(g->value, g->id);
    const Policy wanted = policy == dnnl_graph_partition_policy_fusion ? Policy::fusion : Policy::debug;
    PT_ASSIGN(g->partitions, g->value.get_partitions(wanted));
    return {};
  });
}

dnnl_status_t dnnl_graph_graph_get_partition_num(const_dnnl_graph_graph_t g, size_t* num) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}}, Code::invalid_graph));
    PT_TRY(need({{"num", num}}));
    *num = g->partitions.size();
    return {};
  });
}

dnnl_status_t dnnl_graph_graph_get_partitions(dnnl_graph_graph_t g, size_t num, dnnl_graph_partition_t* partitions) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"graph", g}, {"partitions", partitions}}, Code::invalid_graph));
    if (num == 0) return fail(Code::invalid_graph, "`num` is 0");
    if (num != g->partitions.size())
      return fail(Code::invalid_arguments,
                  str("`num` is ", num, ", the graph has ", g->partitions.size(), " partitions"));
    if (dumps(Dump::graph)) dump_partitioning(g->value, g->id, g->partitions);
    std::vector<std::unique_ptr<dnnl_graph_partition>> made;
    for (const partition& p : g->partitions) made.push_back(std::make_unique<dnnl_graph_partition>(p));
    for (size_t i = 0; i < num; ++i) partitions[i] = made[i].release();
    return {};
  });
}
