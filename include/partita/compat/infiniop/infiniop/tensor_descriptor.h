/* SPDX-License-Identifier: Apache-2.0 */
/* Shape, strides and type of a tensor. Operators copy what they need. */
#ifndef PARTITA_COMPAT_INFINIOP_TENSOR_DESCRIPTOR_H
#define PARTITA_COMPAT_INFINIOP_TENSOR_DESCRIPTOR_H

#include "../infinicore.h"

struct InfiniopTensorDescriptor;
typedef struct InfiniopTensorDescriptor* infiniopTensorDescriptor_t;

/* Strides in elements; null: dense. Errors: NULL_POINTER, BAD_TENSOR_SHAPE (more than 12 dims, a dim of 2^62 or more),
   BAD_TENSOR_DTYPE (no enumerator). */
PARTITA_INFINI_API infiniStatus_t infiniopCreateTensorDescriptor(infiniopTensorDescriptor_t* desc_ptr, size_t ndim,
                                                                 const size_t* shape, const ptrdiff_t* strides,
                                                                 infiniDtype_t dtype);
/* Error: NULL_POINTER. */
PARTITA_INFINI_API infiniStatus_t infiniopDestroyTensorDescriptor(infiniopTensorDescriptor_t desc);

#endif
