/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, streams and memory of the InfiniCore door: the CPU and host memory. */
#ifndef PARTITA_COMPAT_INFINIRT_H
#define PARTITA_COMPAT_INFINIRT_H

#include "infinicore.h"

typedef void* infinirtStream_t;

typedef enum {
  INFINIRT_MEMCPY_H2H = 0,
  INFINIRT_MEMCPY_H2D = 1,
  INFINIRT_MEMCPY_D2H = 2,
  INFINIRT_MEMCPY_D2D = 3
} infinirtMemcpyKind_t;

PARTITA_INFINI_API infiniStatus_t infinirtInit(void);
/* Errors: DEVICE_TYPE_NOT_SUPPORTED for another type than CPU, DEVICE_NOT_FOUND for another number than 0. */
PARTITA_INFINI_API infiniStatus_t infinirtSetDevice(infiniDevice_t device, int device_id);
/* Either result may be null. */
PARTITA_INFINI_API infiniStatus_t infinirtGetDevice(infiniDevice_t* device_ptr, int* device_id_ptr);
/* One CPU, none of the others. Error: NULL_POINTER. */
PARTITA_INFINI_API infiniStatus_t infinirtGetDeviceCount(infiniDevice_t device, int* count);
PARTITA_INFINI_API infiniStatus_t infinirtDeviceSynchronize(void);

/* Every call returns when its work is done: a stream is a mark, which may be null. Error: NULL_POINTER (no result). */
PARTITA_INFINI_API infiniStatus_t infinirtStreamCreate(infinirtStream_t* stream_ptr);
PARTITA_INFINI_API infiniStatus_t infinirtStreamDestroy(infinirtStream_t stream);
PARTITA_INFINI_API infiniStatus_t infinirtStreamSynchronize(infinirtStream_t stream);

/* Memory aligned to 64 bytes. Errors: NULL_POINTER, INTERNAL_ERROR (there is no memory). */
PARTITA_INFINI_API infiniStatus_t infinirtMalloc(void** p_ptr, size_t size);
PARTITA_INFINI_API infiniStatus_t infinirtFree(void* ptr);
/* Both sides may overlap. Errors: NULL_POINTER (and size is not 0), BAD_PARAM (an unknown kind). */
PARTITA_INFINI_API infiniStatus_t infinirtMemcpy(void* dst, const void* src, size_t size, infinirtMemcpyKind_t kind);

#endif
