// SPDX-License-Identifier: Apache-2.0
// Partitions: what they hold, and their ports.
#include "src/compat/dnnl_graph/partitions.hpp"

#include <memory>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/logical_tensors.hpp"
#include "src/compat/dnnl_graph/ops.hpp"

using namespace partita;
using namespace partita::abi;

namespace {

/// The low four bits of an opaque layout's id name the library that made it.
Status check_layout_makers(const op& o) {
  constexpr uint64_t kMaker = 15;
  for (const logical_tensor& in : o.inputs)
    for (const logical_tensor& out : o.outputs)
      if (in.layout == Layout::opaque && out.layout == Layout::opaque &&
          (in.layout_id & kMaker) != (out.layout_id & kMaker))
        return fail(Code::unimplemented, "the opaque layouts of inputs and outputs come from different libraries");
  return {};
}

Status copy_ports(const std::vector<logical_tensor>& ports, size_t num, dnnl_graph_logical_tensor_t* into) {
  if (num != ports.size())
    return fail(Code::invalid_arguments, str("`num` is ", num, ", the partition has ", ports.size(), " such ports"));
  for (size_t i = 0; i < num; ++i) into[i] = to_c(ports[i]);
  return {};
}

}  // namespace

dnnl_status_t dnnl_graph_partition_create_with_op(dnnl_graph_partition_t* made, const_dnnl_graph_op_t op,
                                                  dnnl_engine_kind_t ekind) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", made}, {"op", op}}));
    PT_TRY(check_layout_makers(op->value));
    PT_ASSIGN(const partition single, partition::of(op->value, static_cast<EngineKind>(ekind)));
    if (!single.supported()) return fail(Code::invalid_graph, single.reason());
    *made = new dnnl_graph_partition(single);
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_destroy(dnnl_graph_partition_t p) {
  delete p;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_op_num(const_dnnl_graph_partition_t p, size_t* num) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"num", num}}));
    *num = p->value.ops().size();
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_ops(dnnl_graph_partition_t p, size_t num, size_t* ids) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"ids", ids}}));
    const std::vector<uint64_t> ops = p->value.ops();
    if (num != ops.size())
      return fail(Code::invalid_arguments, str("`num` is ", num, ", the partition has ", ops.size(), " operators"));
    for (size_t i = 0; i < num; ++i) ids[i] = ops[i];
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_id(const_dnnl_graph_partition_t p, size_t* id) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"id", id}}));
    *id = p->value.id();
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_kind(const_dnnl_graph_partition_t p, int* kind) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"kind", kind}}));
    *kind = 0;
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_input_ports_num(const_dnnl_graph_partition_t p, size_t* num) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"num", num}}));
    *num = p->value.input_ports().size();
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_input_ports(const_dnnl_graph_partition_t p, size_t num,
                                                   dnnl_graph_logical_tensor_t* inputs) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"inputs", inputs}}));
    return copy_ports(p->value.input_ports(), num, inputs);
  });
}

dnnl_status_t dnnl_graph_partition_get_output_ports_num(const_dnnl_graph_partition_t p, size_t* num) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"num", num}}));
    *num = p->value.output_ports().size();
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_output_ports(const_dnnl_graph_partition_t p, size_t num,
                                                    dnnl_graph_logical_tensor_t* outputs) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"outputs", outputs}}));
    return copy_ports(p->value.output_ports(), num, outputs);
  });
}

dnnl_status_t dnnl_graph_partition_is_supported(const_dnnl_graph_partition_t p, uint8_t* is_supported) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"is_supported", is_supported}}));
    *is_supported = p->value.supported();
    return {};
  });
}

dnnl_status_t dnnl_graph_partition_get_engine_kind(const_dnnl_graph_partition_t p, dnnl_engine_kind_t* kind) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"partition", p}, {"kind", kind}}));
    *kind = static_cast<dnnl_engine_kind_t>(p->value.engine_kind());
    return {};
  });
}
