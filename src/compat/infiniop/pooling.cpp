// SPDX-License-Identifier: Apache-2.0
// The four poolings: descriptors made of checked lists and views, executed through programs.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "src/base/addressable.hpp"
#include "src/base/shared_place.hpp"
#include "src/compat/infiniop/objects.hpp"

using namespace partita;
using namespace partita::compat;

namespace {

using Descriptor = InfiniopDescriptor*;
using Tensor = const InfiniopTensorDescriptor*;

/// The lists of a call as the client gives them.
struct Lists {
  const void *kernel, *strides, *pads;
  bool ceil;
};

Dtype dtype_of(infiniDtype_t type) {
  switch (type) {
    case INFINI_DTYPE_F16: return Dtype::f16;
    case INFINI_DTYPE_F32: return Dtype::f32;
    case INFINI_DTYPE_BF16: return Dtype::bf16;
    default: return Dtype::undef;
  }
}

/// Fills `result` from size_t[count]; false where a number is not from `least` to 2^31 - 1.
bool read_list(const void* list, int count, size_t least, Dims& result) {
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  const auto* numbers = static_cast<const size_t*>(list);
  if (std::any_of(numbers, numbers + count, [=](size_t n) { return n < least || n > kMost; })) return false;
  result = Dims(count, 0);
  std::copy_n(numbers, count, result.begin());
  return true;
}

bool is(const Dims& source, const Dims& pooled, const Pooling& p, LastWindow rule) {
  if (source.size() != pooled.size() || source[0] != pooled[0] || source[1] != pooled[1]) return false;
  for (int i = 0; i < p.kernel.size(); ++i) {
    const int64_t cells = source[i + 2];
    if (cells == 0) continue;  // nothing is pooled
    const int64_t count =
        window_count(cells, p.kernel[i], p.strides[i], p.pads_begin[i], p.pads_end[i], p.dilations[i], rule);
    if (count < 1 || pooled[i + 2] != count) return false;
  }
  return true;
}

infiniStatus_t read_lists(const Lists& lists, int spatial, Pooling& p) {
  if (!lists.kernel || !lists.strides || !lists.pads) return INFINI_STATUS_NULL_POINTER;
  if (!read_list(lists.kernel, spatial, 1, p.kernel) || !read_list(lists.strides, spatial, 1, p.strides) ||
      !read_list(lists.pads, spatial, 0, p.pads_begin))
    return INFINI_STATUS_BAD_PARAM;
  p.pads_end = p.pads_begin;
  p.dilations = Dims(spatial, 1);
  p.ceil = lists.ceil;
  p.divisor = Divisor::padded_box;
  return INFINI_STATUS_SUCCESS;
}

/// `source` is what is pooled, `pooled` what pooling makes of it; `inputs` and `output` are the operator's.
infiniStatus_t create(OpKind kind, const InfiniopHandle* handle, Descriptor* result, Tensor source, Tensor pooled,
                      std::initializer_list<Tensor> inputs, Tensor output, const Lists& lists) {
  if (!handle || !result || !source || !pooled || !output) return INFINI_STATUS_NULL_POINTER;
  for (Tensor t : {source, pooled, output}) {
    if (dtype_of(t->type) == Dtype::undef || t->type != source->type) return INFINI_STATUS_BAD_TENSOR_DTYPE;
    if (t->dims.size() < 3 || t->dims.size() > 5) return INFINI_STATUS_BAD_TENSOR_SHAPE;
    if (!addressable(t->dims, t->strides)) return INFINI_STATUS_BAD_TENSOR_STRIDES;
  }
  Pooling p;
  p.kind = kind;
  if (const infiniStatus_t s = read_lists(lists, source->dims.size() - 2, p); s != INFINI_STATUS_SUCCESS) return s;
  const bool fits = p.ceil ? is(source->dims, pooled->dims, p, LastWindow::kept_inside) ||
                                 is(source->dims, pooled->dims, p, LastWindow::kept)
                           : is(source->dims, pooled->dims, p, LastWindow::dropped);
  const bool result_fits = output == pooled || output->dims == source->dims;
  if (!fits || !result_fits) return INFINI_STATUS_BAD_TENSOR_SHAPE;

  const auto view = [](Tensor t) { return View{dtype_of(t->type), t->dims, t->strides}; };
  p.output = view(output);
  p.input_count = 0;
  for (Tensor t : inputs) p.inputs[static_cast<size_t>(p.input_count++)] = view(t);
  if (shared_place(p.output.dims, p.output.strides)) return INFINI_STATUS_BAD_TENSOR_STRIDES;
  std::shared_ptr<const PoolingProgram> program;
  if (!p.output.empty()) {
    auto made = PoolingProgram::of(p);
    if (!made.ok()) return infiniop::status_of(made.status().code());
    program = std::move(made).value();
  }
  *result = new InfiniopDescriptor{kind, std::move(program)};
  return INFINI_STATUS_SUCCESS;
}

size_t workspace_bytes(const InfiniopDescriptor& desc) { return desc.program ? desc.program->scratchpad_bytes() : 0; }

infiniStatus_t check(OpKind kind, const InfiniopDescriptor* desc) {
  if (!desc) return INFINI_STATUS_NULL_POINTER;
  return desc->kind == kind ? INFINI_STATUS_SUCCESS : INFINI_STATUS_BAD_PARAM;
}

infiniStatus_t workspace_size(OpKind kind, const InfiniopDescriptor* desc, size_t* size) {
  if (const infiniStatus_t s = check(kind, desc); s != INFINI_STATUS_SUCCESS) return s;
  if (!size) return INFINI_STATUS_NULL_POINTER;
  *size = workspace_bytes(*desc);
  return INFINI_STATUS_SUCCESS;
}

infiniStatus_t execute(OpKind kind, const InfiniopDescriptor* desc, void* workspace, size_t size,
                       std::initializer_list<const void*> inputs, void* output) {
  if (const infiniStatus_t s = check(kind, desc); s != INFINI_STATUS_SUCCESS) return s;
  if (!desc->program) return INFINI_STATUS_SUCCESS;
  if (size < workspace_bytes(*desc)) return INFINI_STATUS_INSUFFICIENT_WORKSPACE;
  if (!output || (workspace_bytes(*desc) > 0 && !workspace)) return INFINI_STATUS_NULL_POINTER;
  if (std::ranges::count(inputs, nullptr) > 0) return INFINI_STATUS_NULL_POINTER;
  const Status done = desc->program->execute({inputs.begin(), inputs.size()}, output, workspace);
  return infiniop::status_of(done.code());
}

infiniStatus_t destroy(OpKind kind, InfiniopDescriptor* desc) {
  if (const infiniStatus_t s = check(kind, desc); s != INFINI_STATUS_SUCCESS) return s;
  delete desc;
  return INFINI_STATUS_SUCCESS;
}

}  // namespace

infiniStatus_t infiniopCreateAvgPoolDescriptor(infiniopHandle_t handle, infiniopAvgPoolDescriptor_t* desc_ptr,
                                               infiniopTensorDescriptor_t output_desc,
                                               infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides,
                                               void* pads, bool ceil_mode) try {
  return create(OpKind::AvgPool, handle, desc_ptr, input_desc, output_desc, {input_desc}, output_desc,
                {kernel_size, strides, pads, ceil_mode});
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopGetAvgPoolWorkspaceSize(infiniopAvgPoolDescriptor_t desc, size_t* size) try {
  return workspace_size(OpKind::AvgPool, desc, size);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopAvgPool(infiniopAvgPoolDescriptor_t desc, void* workspace, size_t workspace_size, void* output,
                               const void* input, void*) try {
  return execute(OpKind::AvgPool, desc, workspace, workspace_size, {input}, output);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopDestroyAvgPoolDescriptor(infiniopAvgPoolDescriptor_t desc) try {
  return destroy(OpKind::AvgPool, desc);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infiniopCreateMaxPoolDescriptor(infiniopHandle_t handle, infiniopMaxPoolDescriptor_t* desc_ptr,
                                               infiniopTensorDescriptor_t output_desc,
                                               infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides,
                                               void* pads, bool ceil_mode) try {
  return create(OpKind::MaxPool, handle, desc_ptr, input_desc, output_desc, {input_desc}, output_desc,
                {kernel_size, strides, pads, ceil_mode});
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopGetMaxPoolWorkspaceSize(infiniopMaxPoolDescriptor_t desc, size_t* size) try {
  return workspace_size(OpKind::MaxPool, desc, size);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopMaxPool(infiniopMaxPoolDescriptor_t desc, void* workspace, size_t workspace_size, void* output,
                               const void* input, void*) try {
  return execute(OpKind::MaxPool, desc, workspace, workspace_size, {input}, output);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopDestroyMaxPoolDescriptor(infiniopMaxPoolDescriptor_t desc) try {
  return destroy(OpKind::MaxPool, desc);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infiniopCreateAvgPoolBackwardDescriptor(infiniopHandle_t handle,
                                                       infiniopAvgPoolBackwardDescriptor_t* desc_ptr,
                                                       infiniopTensorDescriptor_t grad_input_desc,
                                                       infiniopTensorDescriptor_t grad_output_desc,
                                                       infiniopTensorDescriptor_t input_desc, void* kernel_size,
                                                       void* strides, void* pads, bool ceil_mode) try {
  return create(OpKind::AvgPoolBackward, handle, desc_ptr, input_desc, grad_output_desc, {grad_output_desc},
                grad_input_desc, {kernel_size, strides, pads, ceil_mode});
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopGetAvgPoolBackwardWorkspaceSize(infiniopAvgPoolBackwardDescriptor_t desc, size_t* size) try {
  return workspace_size(OpKind::AvgPoolBackward, desc, size);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopAvgPoolBackward(infiniopAvgPoolBackwardDescriptor_t desc, void* workspace, size_t workspace_size,
                                       void* grad_input, const void* grad_output, const void*, void*) try {
  return execute(OpKind::AvgPoolBackward, desc, workspace, workspace_size, {grad_output}, grad_input);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopDestroyAvgPoolBackwardDescriptor(infiniopAvgPoolBackwardDescriptor_t desc) try {
  return destroy(OpKind::AvgPoolBackward, desc);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infiniopCreateMaxPoolBackwardDescriptor(infiniopHandle_t handle,
                                                       infiniopMaxPoolBackwardDescriptor_t* desc_ptr,
                                                       infiniopTensorDescriptor_t grad_input_desc,
                                                       infiniopTensorDescriptor_t grad_output_desc,
                                                       infiniopTensorDescriptor_t input_desc, void* kernel_size,
                                                       void* strides, void* pads, bool ceil_mode) try {
  return create(OpKind::MaxPoolBackward, handle, desc_ptr, input_desc, grad_output_desc, {input_desc, grad_output_desc},
                grad_input_desc, {kernel_size, strides, pads, ceil_mode});
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopGetMaxPoolBackwardWorkspaceSize(infiniopMaxPoolBackwardDescriptor_t desc, size_t* size) try {
  return workspace_size(OpKind::MaxPoolBackward, desc, size);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopMaxPoolBackward(infiniopMaxPoolBackwardDescriptor_t desc, void* workspace, size_t workspace_size,
                                       void* grad_input, const void* grad_output, const void* input, void*) try {
  return execute(OpKind::MaxPoolBackward, desc, workspace, workspace_size, {input, grad_output}, grad_input);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
infiniStatus_t infiniopDestroyMaxPoolBackwardDescriptor(infiniopMaxPoolBackwardDescriptor_t desc) try {
  return destroy(OpKind::MaxPoolBackward, desc);
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
