// SPDX-License-Identifier: Apache-2.0
// Operators and their attributes. Whether an attribute fits is found when the operator is added to a graph.
#include "src/compat/dnnl_graph/ops.hpp"

#include <span>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/logical_tensors.hpp"

using namespace partita;
using namespace partita::abi;

namespace {

/// The numbers of attributes tell whether a value or a list is meant.
bool is_single_float(int attr) { return attr >= 1 && attr < 0x20; }
bool is_single_integer(int attr) { return attr >= 0x30 && attr < 0x40; }

Status set(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, AttrValue value) {
  op->value.set_attr(static_cast<Attr>(name), std::move(value));
  return {};
}

}  // namespace

dnnl_status_t dnnl_graph_op_create(dnnl_graph_op_t* op, size_t id, dnnl_graph_op_kind_t kind,
                                   const char* verbose_name) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"verbose_name", verbose_name}}));
    const auto asked = static_cast<OpKind>(kind);
    const OpKind known = position_of(asked) < kOpKinds ? asked : OpKind::Wildcard;
    std::string name = verbose_name;
    if (name.empty()) name = str(name_of(known), "_", id);
    *op = new dnnl_graph_op{partita::op(id, known, std::move(name)), kind};
    return {};
  });
}

dnnl_status_t dnnl_graph_op_destroy(dnnl_graph_op_t op) {
  delete op;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_op_add_input(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t* input) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"input", input}}));
    PT_TRY(check_rank(*input));
    op->value.add_input(from_c(*input));
    return {};
  });
}

dnnl_status_t dnnl_graph_op_add_output(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t* output) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"output", output}}));
    PT_TRY(check_rank(*output));
    op->value.add_output(from_c(*output));
    return {};
  });
}

dnnl_status_t dnnl_graph_op_set_attr_f32(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const float* value,
                                         size_t value_len) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"value", value}}));
    if (is_single_float(static_cast<int>(name))) return set(op, name, *value);
    return set(op, name, std::vector<float>(value, value + value_len));
  });
}

dnnl_status_t dnnl_graph_op_set_attr_bool(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const uint8_t* value,
                                          size_t value_len) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"value", value}}));
    if (value_len != 1) return fail(Code::invalid_arguments, str("`value_len` must be 1, found ", value_len));
    return set(op, name, *value != 0);
  });
}

dnnl_status_t dnnl_graph_op_set_attr_s64(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const int64_t* value,
                                         size_t value_len) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"value", value}}));
    if (is_single_integer(static_cast<int>(name))) return set(op, name, *value);
    return set(op, name, std::vector<int64_t>(value, value + value_len));
  });
}

dnnl_status_t dnnl_graph_op_set_attr_str(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const char* value,
                                         size_t value_len) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"value", value}}));
    // Clients give any positive length; the text ends at its zero.
    if (value_len == 0) return fail(Code::invalid_arguments, "`value_len` must not be 0");
    return set(op, name, std::string(value));
  });
}

dnnl_status_t dnnl_graph_op_get_id(const_dnnl_graph_op_t op, size_t* id) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"id", id}}));
    *id = op->value.id;
    return {};
  });
}

dnnl_status_t dnnl_graph_op_get_kind(const_dnnl_graph_op_t op, dnnl_graph_op_kind_t* kind) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"op", op}, {"kind", kind}}));
    *kind = op->kind;
    return {};
  });
}
