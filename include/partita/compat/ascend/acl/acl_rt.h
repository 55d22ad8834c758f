/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, streams and memory of the Ascend door. The one device, number 0, is the CPU: its memory is host memory. */
#ifndef PARTITA_COMPAT_ACL_RT_H
#define PARTITA_COMPAT_ACL_RT_H

#include "acl_base.h"

typedef enum { ACL_MEM_MALLOC_HUGE_FIRST = 0, ACL_MEM_MALLOC_HUGE_ONLY = 1, ACL_MEM_MALLOC_NORMAL_ONLY = 2 }
    aclrtMemMallocPolicy;

typedef enum {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3
} aclrtMemcpyKind;

/* Errors: ACL_ERROR_RT_INVALID_DEVICEID for another device than 0, ACL_ERROR_RT_PARAM_INVALID for a null result. */
PARTITA_ACL_API aclError aclrtSetDevice(int32_t deviceId);
PARTITA_ACL_API aclError aclrtResetDevice(int32_t deviceId);
PARTITA_ACL_API aclError aclrtGetDevice(int32_t* deviceId);
PARTITA_ACL_API aclError aclrtGetDeviceCount(uint32_t* count);
PARTITA_ACL_API aclError aclrtSynchronizeDevice(void);

/* A context is a mark without effect. Errors: ACL_ERROR_RT_PARAM_INVALID (null), ACL_ERROR_RT_INVALID_DEVICEID. */
PARTITA_ACL_API aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);
PARTITA_ACL_API aclError aclrtDestroyContext(aclrtContext context);
PARTITA_ACL_API aclError aclrtSetCurrentContext(aclrtContext context);

/* Every call returns when its work is done, so that a stream has nothing to wait for; a null stream is the default one.
   Errors: ACL_ERROR_RT_PARAM_INVALID for a null result, and for a null stream to be destroyed. */
PARTITA_ACL_API aclError aclrtCreateStream(aclrtStream* stream);
PARTITA_ACL_API aclError aclrtDestroyStream(aclrtStream stream);
PARTITA_ACL_API aclError aclrtSynchronizeStream(aclrtStream stream);

/* Memory aligned to 64 bytes. Errors: ACL_ERROR_RT_PARAM_INVALID (null, or a size of 0),
   ACL_ERROR_RT_MEMORY_ALLOCATION. */
PARTITA_ACL_API aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
PARTITA_ACL_API aclError aclrtFree(void* devPtr);
PARTITA_ACL_API aclError aclrtMallocHost(void** hostPtr, size_t size);
PARTITA_ACL_API aclError aclrtFreeHost(void* hostPtr);
/* Both sides may overlap. Errors: ACL_ERROR_RT_PARAM_INVALID (null, count > destMax, an unknown kind). */
PARTITA_ACL_API aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind);
PARTITA_ACL_API aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                          aclrtMemcpyKind kind, aclrtStream stream);
PARTITA_ACL_API aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count);

#endif
