/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum pooling; padding never wins. */
#ifndef PARTITA_COMPAT_INFINIOP_MAXPOOL_H
#define PARTITA_COMPAT_INFINIOP_MAXPOOL_H

#include "../operator_descriptor.h"

typedef struct InfiniopDescriptor* infiniopMaxPoolDescriptor_t;

/* Tensors are (N, C, 1 to 3 spatial dims), f32, f16 or bf16. kernel_size, strides and pads point to size_t[ndim - 2];
   pads count on both sides. ceil_mode as for AvgPool. Errors: NULL_POINTER, BAD_PARAM (a kernel or stride of 0, a
   number of 2^31 or more), BAD_TENSOR_DTYPE, BAD_TENSOR_SHAPE, BAD_TENSOR_STRIDES (negative, or cells of the result
   that share memory), NOT_IMPLEMENTED. */
PARTITA_INFINI_API infiniStatus_t infiniopCreateMaxPoolDescriptor(
    infiniopHandle_t handle, infiniopMaxPoolDescriptor_t* desc_ptr, infiniopTensorDescriptor_t output_desc,
    infiniopTensorDescriptor_t input_desc, void* kernel_size, void* strides, void* pads, bool ceil_mode);
/* Errors here and below: NULL_POINTER, BAD_PARAM (a descriptor of another operator). */
PARTITA_INFINI_API infiniStatus_t infiniopGetMaxPoolWorkspaceSize(infiniopMaxPoolDescriptor_t desc, size_t* size);
/* Further errors: INSUFFICIENT_WORKSPACE, INTERNAL_ERROR (no memory). */
PARTITA_INFINI_API infiniStatus_t infiniopMaxPool(infiniopMaxPoolDescriptor_t desc, void* workspace,
                                                  size_t workspace_size, void* output, const void* input, void* stream);
PARTITA_INFINI_API infiniStatus_t infiniopDestroyMaxPoolDescriptor(infiniopMaxPoolDescriptor_t desc);

#endif
