/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of the maximum pooling of maxpool.h, found from its input: the first greatest cell of each window. */
#ifndef PARTITA_COMPAT_INFINIOP_MAXPOOL_BACKWARD_H
#define PARTITA_COMPAT_INFINIOP_MAXPOOL_BACKWARD_H

#include "../operator_descriptor.h"

typedef struct InfiniopDescriptor* infiniopMaxPoolBackwardDescriptor_t;

/* Tensors are (N, C, 1 to 3 spatial dims), f32, f16 or bf16. kernel_size, strides and pads point to size_t[ndim - 2];
   pads count on both sides. grad_input has the shape of input. Errors: NULL_POINTER, BAD_PARAM (a kernel or stride of
   0, a number of 2^31 or more), BAD_TENSOR_DTYPE, BAD_TENSOR_SHAPE, BAD_TENSOR_STRIDES (negative, or cells of the
   result that share memory), NOT_IMPLEMENTED. */
PARTITA_INFINI_API infiniStatus_t infiniopCreateMaxPoolBackwardDescriptor(
    infiniopHandle_t handle, infiniopMaxPoolBackwardDescriptor_t* desc_ptr, infiniopTensorDescriptor_t grad_input_desc,
    infiniopTensorDescriptor_t grad_output_desc, infiniopTensorDescriptor_t input_desc, void* kernel_size,
    void* strides, void* pads, bool ceil_mode);
/* Errors here and below: NULL_POINTER, BAD_PARAM (a descriptor of another operator). */
PARTITA_INFINI_API infiniStatus_t infiniopGetMaxPoolBackwardWorkspaceSize(infiniopMaxPoolBackwardDescriptor_t desc,
                                                                          size_t* size);
/* Further errors: INSUFFICIENT_WORKSPACE, INTERNAL_ERROR (no memory). */
PARTITA_INFINI_API infiniStatus_t infiniopMaxPoolBackward(infiniopMaxPoolBackwardDescriptor_t desc, void* workspace,
                                                          size_t workspace_size, void* grad_input,
                                                          const void* grad_output, const void* input, void* stream);
PARTITA_INFINI_API infiniStatus_t infiniopDestroyMaxPoolBackwardDescriptor(infiniopMaxPoolBackwardDescriptor_t desc);

#endif
