// SPDX-License-Identifier: Apache-2.0
// Devices, streams and memory of the InfiniCore door, on the host.
#include <cstdlib>
#include <cstring>

#include "src/compat/infiniop/objects.hpp"

infiniStatus_t infinirtInit(void) { return INFINI_STATUS_SUCCESS; }

infiniStatus_t infinirtSetDevice(infiniDevice_t device, int device_id) try {
  if (device != INFINI_DEVICE_CPU) return INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED;
  return device_id == 0 ? INFINI_STATUS_SUCCESS : INFINI_STATUS_DEVICE_NOT_FOUND;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtGetDevice(infiniDevice_t* device_ptr, int* device_id_ptr) try {
  if (device_ptr) *device_ptr = INFINI_DEVICE_CPU;
  if (device_id_ptr) *device_id_ptr = 0;
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtGetDeviceCount(infiniDevice_t device, int* count) try {
  if (!count) return INFINI_STATUS_NULL_POINTER;
  *count = device == INFINI_DEVICE_CPU ? 1 : 0;
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtDeviceSynchronize(void) { return INFINI_STATUS_SUCCESS; }

namespace {
/// A stream is told from null and freed; it holds nothing.
struct Stream {};
}  // namespace

infiniStatus_t infinirtStreamCreate(infinirtStream_t* stream_ptr) try {
  if (!stream_ptr) return INFINI_STATUS_NULL_POINTER;
  *stream_ptr = new Stream;
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtStreamDestroy(infinirtStream_t stream) try {
  delete static_cast<Stream*>(stream);
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtStreamSynchronize(infinirtStream_t) { return INFINI_STATUS_SUCCESS; }

infiniStatus_t infinirtMalloc(void** p_ptr, size_t size) try {
  if (!p_ptr) return INFINI_STATUS_NULL_POINTER;
  return posix_memalign(p_ptr, 64, size) == 0 ? INFINI_STATUS_SUCCESS : INFINI_STATUS_INTERNAL_ERROR;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtFree(void* ptr) try {
  std::free(ptr);
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}

infiniStatus_t infinirtMemcpy(void* dst, const void* src, size_t size, infinirtMemcpyKind_t kind) try {
  if (kind < INFINIRT_MEMCPY_H2H || kind > INFINIRT_MEMCPY_D2D) return INFINI_STATUS_BAD_PARAM;
  if (size == 0) return INFINI_STATUS_SUCCESS;
  if (!dst || !src) return INFINI_STATUS_NULL_POINTER;
  std::memmove(dst, src, size);
  return INFINI_STATUS_SUCCESS;
} catch (...) {
  return INFINI_STATUS_INTERNAL_ERROR;
}
