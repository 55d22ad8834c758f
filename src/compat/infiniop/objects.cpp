// SPDX-License-Identifier: Apache-2.0
// Handles and tensor descriptors.
#include "src/compat/infiniop/objects.hpp"

using partita::Dims;

infiniStatus_t infiniopCreateHandle(infiniopHandle_t* handle_ptr) try {
  if (!handle_ptr) return INFINI_STATUS_NULL_POINTER;
  *handle_ptr = new InfiniopHandle;
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infiniopDestroyHandle(infiniopHandle_t handle) try {
  if (!handle) return INFINI_STATUS_NULL_POINTER;
  delete handle;
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infiniopCreateTensorDescriptor(infiniopTensorDescriptor_t* desc_ptr, size_t ndim, const size_t* shape,
                                              const ptrdiff_t* strides, infiniDtype_t dtype) try {
  if (!desc_ptr || (ndim > 0 && !shape)) return INFINI_STATUS_NULL_POINTER;
  if (ndim > static_cast<size_t>(partita::kMaxRank)) return INFINI_STATUS_BAD_TENSOR_SHAPE;
  if (dtype <= INFINI_DTYPE_INVALID || dtype > INFINI_DTYPE_BF16) return INFINI_STATUS_BAD_TENSOR_DTYPE;
  constexpr size_t kMost = size_t{1} << 62;
  Dims dims, steps;
  size_t elements = 1;
  for (size_t i = 0; i < ndim; ++i) {
    if (shape[i] >= kMost || (shape[i] > 0 && __builtin_mul_overflow(elements, shape[i], &elements)) ||
        elements >= kMost)
      return INFINI_STATUS_BAD_TENSOR_SHAPE;
    dims.push_back(static_cast<int64_t>(shape[i]));
    if (strides) steps.push_back(strides[i]);
  }
  *desc_ptr = new InfiniopTensorDescriptor{dtype, dims, strides ? steps : partita::dense_strides(dims)};
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infiniopDestroyTensorDescriptor(infiniopTensorDescriptor_t desc) try {
  if (!desc) return INFINI_STATUS_NULL_POINTER;
  delete desc;
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
