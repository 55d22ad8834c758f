/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that operator calls take: tensors, integer lists, executors. Objects are not thread-safe; different
   objects may be used by different threads. */
#ifndef PARTITA_COMPAT_ACL_META_H
#define PARTITA_COMPAT_ACL_META_H

#include "../acl/acl_base.h"

typedef struct aclTensor aclTensor;
typedef struct aclIntArray aclIntArray;
typedef struct aclOpExecutor aclOpExecutor;
typedef int32_t aclnnStatus;

/* Codes of operator calls. */
enum {
  ACLNN_SUCCESS = 0,
  ACLNN_ERR_PARAM_NULLPTR = 161001,
  ACLNN_ERR_PARAM_INVALID = 161002,
  ACLNN_ERR_RUNTIME_ERROR = 361001,
  ACLNN_ERR_INNER = 561000,
  ACLNN_ERR_INNER_NULLPTR = 561103
};

/* A view of memory: viewDims with strides in elements (null: dense), that begins `offset` elements behind tensorData,
   where a storage of storageDims lies. Copies its lists, not the data. Null, with the reason in aclGetRecentErrMsg,
   for more than 8 dims, null dims, or a view that leaves its storage. */
PARTITA_ACL_API aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                           const int64_t* stride, int64_t offset, aclFormat format,
                                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData);
/* Null is allowed here and below. An executor does not need the tensors it was made with. */
PARTITA_ACL_API aclnnStatus aclDestroyTensor(const aclTensor* tensor);

/* Null where `value` is null although size is not 0. */
PARTITA_ACL_API aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);
PARTITA_ACL_API aclnnStatus aclDestroyIntArray(const aclIntArray* array);

/* An executor serves one second call; one that is made repeatable serves any number and is to be destroyed.
   Error: ACLNN_ERR_INNER_NULLPTR. */
PARTITA_ACL_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
PARTITA_ACL_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);
/* Another address for the tensor at place `index` of the first call's tensors (inputs, then the output), whose shape,
   type and strides stay; also kept in `tensor`. Errors: ACLNN_ERR_INNER_NULLPTR (null executor or tensor),
   ACLNN_ERR_PARAM_INVALID (no such place, or an executor that is not repeatable). */
PARTITA_ACL_API aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                             void* addr);

#endif
