/* SPDX-License-Identifier: Apache-2.0 */
/* Types and codes that every call of the Ascend door shares. See docs/ascend.md. */
#ifndef PARTITA_COMPAT_ACL_BASE_H
#define PARTITA_COMPAT_ACL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PARTITA_ACL_API extern "C" __attribute__((visibility("default")))
#else
#define PARTITA_ACL_API extern __attribute__((visibility("default")))
#endif

typedef int aclError;
typedef void* aclrtStream;
typedef void* aclrtContext;

/* Codes of the runtime calls. */
enum {
  ACL_SUCCESS = 0,
  ACL_ERROR_NONE = 0,
  ACL_ERROR_INVALID_PARAM = 100000,
  ACL_ERROR_UNINITIALIZE = 100001,
  ACL_ERROR_REPEAT_INITIALIZE = 100002,
  ACL_ERROR_RT_PARAM_INVALID = 107000,
  ACL_ERROR_RT_INVALID_DEVICEID = 107001,
  ACL_ERROR_BAD_ALLOC = 200000,
  ACL_ERROR_RT_MEMORY_ALLOCATION = 207001
};

/* Element types; those of 1.0 that Partita has a name for. */
typedef enum {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_BF16 = 27
} aclDataType;

/* What the axes of a tensor mean; NCL is also said of (C, H, W) without a batch. */
typedef enum {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NCL = 47
} aclFormat;

/* The text of this thread's last failure, null before the first one; valid until the next failure of this thread. */
PARTITA_ACL_API const char* aclGetRecentErrMsg(void);
/* Bytes of one element; 0 for a type that is not named above. */
PARTITA_ACL_API size_t aclDataTypeSize(aclDataType type);

#endif
