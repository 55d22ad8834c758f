/* SPDX-License-Identifier: Apache-2.0 */
/* Average pooling; windows are divided by their cells inside the source and its padding. */
#ifndef PARTITA_COMPAT_INFINIOP_AVERAGEPOOL_H
#define PARTITA_COMPAT_INFINIOP_AVERAGEPOOL_H

#include "../operator_descriptor.h"

typedef struct InfiniopDescriptor* infiniopAvgPoolDescriptor_t;

/* Tensors are (N, C, 1 to 3 spatial dims), f32, f16 or bf16. kernel_size, strides and pads point to size_t[ndim - 2];
   pads count on both sides. With ceil_mode a last window that does not fit is kept, unless it starts behind left
   padding and source and the result has no place for it. Errors: NULL_POINTER, BAD_PARAM (a kernel or stride of 0, a
   number of 2^31 or more), BAD_TENSOR_DTYPE, BAD_TENSOR_SHAPE, BAD_TENSOR_STRIDES (negative, or cells of the result
   that share memory), NOT_IMPLEMENTED. */
PARTITA_INFINI_API infiniStatus_t infiniopCreateAvgPoolDescriptor(
    infiniopHandle_t handle, infiniopAvgPoolDescriptor_t* desc_ptr, infiniopTensorDescriptor_t output_desc,
    infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides, void* pads, bool ceil_mode);
/* Errors here and below: NULL_POINTER, BAD_PARAM (a descriptor of another operator). */
PARTITA_INFINI_API infiniStatus_t infiniopGetAvgPoolWorkspaceSize(infiniopAvgPoolDescriptor_t desc, size_t* size);
/* Further errors: INSUFFICIENT_WORKSPACE, INTERNAL_ERROR (no memory). */
PARTITA_INFINI_API infiniStatus_t infiniopAvgPool(infiniopAvgPoolDescriptor_t desc, void* workspace,
                                                  size_t workspace_size, void* output, const void* input, void* stream);
PARTITA_INFINI_API infiniStatus_t infiniopDestroyAvgPoolDescriptor(infiniopAvgPoolDescriptor_t desc);

#endif
