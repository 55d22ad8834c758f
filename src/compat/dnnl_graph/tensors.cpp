// SPDX-License-Identifier: Apache-2.0
// Tensors: the caller's memory, the library's, or a host scalar.
#include "src/compat/dnnl_graph/tensors.hpp"

#include <cstring>
#include <memory>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/engines.hpp"
#include "src/compat/dnnl_graph/logical_tensors.hpp"

using namespace partita;
using namespace partita::abi;

namespace {

constexpr size_t kAlignment = 64;

/// A buffer of the library's own, from the engine's allocator.
Status allocate(dnnl_graph_tensor& t) {
  if (t.bytes == kUnknownSize)
    return fail(Code::invalid_arguments,
                str("tensor ", t.desc.id, ": memory cannot be allocated where dims or strides are not known"));
  if (t.bytes == 0) return {};
  const allocator memory = engine_at(t.engine)->memory();
  t.owned = memory.allocate(t.bytes, kAlignment);
  if (!t.owned)
    return fail(Code::out_of_memory, str("the allocator gave no ", t.bytes, " bytes for tensor ", t.desc.id));
  t.free = memory.deallocate;
  t.data = t.owned;
  return {};
}

}  // namespace

dnnl_status_t dnnl_graph_tensor_create(dnnl_graph_tensor_t* tensor, const dnnl_graph_logical_tensor_t* logical_tensor,
                                       dnnl_engine_t engine, void* handle) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"tensor", tensor}, {"logical_tensor", logical_tensor}, {"engine", engine}}));
    PT_TRY(check_rank(*logical_tensor));
    PT_TRY(check_layout(*logical_tensor));
    if (is_host_scalar(*logical_tensor))
      return fail(Code::invalid_arguments, "a host scalar is made by dnnl_graph_tensor_create_scalar");
    auto made = std::make_unique<dnnl_graph_tensor>();
    made->desc = *logical_tensor;
    made->engine = engine;
    made->bytes = bytes_of(*logical_tensor);
    if (handle == DNNL_MEMORY_ALLOCATE)
      PT_TRY(allocate(*made));
    else
      made->data = handle;
    *tensor = made.release();
    return {};
  });
}

dnnl_status_t dnnl_graph_tensor_create_scalar(dnnl_graph_tensor_t* tensor,
                                              const dnnl_graph_logical_tensor_t* logical_tensor, void* scalar) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"tensor", tensor}, {"logical_tensor", logical_tensor}, {"scalar", scalar}}));
    PT_TRY(check_rank(*logical_tensor));
    if (!is_host_scalar(*logical_tensor))
      return fail(Code::invalid_arguments, "the logical tensor does not have the property host_scalar");
    if (scalar == DNNL_MEMORY_ALLOCATE) return fail(Code::invalid_arguments, "a host scalar's value must be given");
    dnnl_graph_logical_tensor_t plain = *logical_tensor;  // one element has no layout
    plain.layout_type = dnnl_graph_layout_type_strided;
    const size_t bytes = bytes_of(plain);
    if (logical_tensor->ndims != 0 || bytes > sizeof(dnnl_graph_tensor::scalar))
      return fail(Code::invalid_arguments, "the logical tensor of a host scalar must be of rank 0");
    auto made = std::make_unique<dnnl_graph_tensor>();
    made->desc = *logical_tensor;
    made->bytes = bytes;
    std::memcpy(made->scalar, scalar, bytes);
    made->data = made->scalar;
    *tensor = made.release();
    return {};
  });
}

dnnl_status_t dnnl_graph_tensor_destroy(dnnl_graph_tensor_t tensor) {
  delete tensor;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_data_handle(const_dnnl_graph_tensor_t tensor, void** handle) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"tensor", tensor}, {"handle", handle}}));
    *handle = is_host_scalar(tensor->desc) ? nullptr : tensor->data;
    return {};
  });
}

dnnl_status_t dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor_t tensor, void* handle) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"tensor", tensor}}));
    if (is_host_scalar(tensor->desc))
      return fail(Code::invalid_arguments, "the value of a host scalar does not change");
    tensor->data = handle;
    return {};
  });
}

dnnl_status_t dnnl_graph_tensor_get_engine(const_dnnl_graph_tensor_t tensor, dnnl_engine_t* engine) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"tensor", tensor}, {"engine", engine}}));
    *engine = tensor->engine;
    return {};
  });
}

dnnl_status_t dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor,
                                                   dnnl_graph_logical_tensor_t* logical_tensor) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"tensor", tensor}, {"logical_tensor", logical_tensor}}));
    *logical_tensor = tensor->desc;
    return {};
  });
}
