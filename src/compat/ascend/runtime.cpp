// SPDX-License-Identifier: Apache-2.0
// Devices, streams and memory of the Ascend door, on the host.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "src/base/text.hpp"
#include "src/compat/ascend/objects.hpp"

using partita::str;
using partita::compat::ascend::no_memory;
using partita::compat::ascend::report;

namespace {

std::atomic<bool> initialized = false;

aclError null_pointer(const char* call, const char* what) {
  return report(ACL_ERROR_RT_PARAM_INVALID, str(call, ": ", what, " is null"));
}

aclError check_device(const char* call, int32_t device) {
  if (device == 0) return ACL_SUCCESS;
  return report(ACL_ERROR_RT_INVALID_DEVICEID, str(call, ": there is only device 0, got ", device));
}

/// Streams and contexts are told from null and freed; they hold nothing.
struct Mark {};

aclError allocate(const char* call, void** result, size_t size) {
  if (!result) return null_pointer(call, "the result");
  if (size == 0) return report(ACL_ERROR_RT_PARAM_INVALID, str(call, ": the size is 0"));
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, size) != 0)
    return report(ACL_ERROR_RT_MEMORY_ALLOCATION, str(call, ": there are no ", size, " bytes"));
  *result = memory;
  return ACL_SUCCESS;
}

aclError copy(const char* call, void* dst, size_t most, const void* src, size_t count, aclrtMemcpyKind kind) {
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEVICE_TO_DEVICE)
    return report(ACL_ERROR_RT_PARAM_INVALID, str(call, ": unknown kind ", static_cast<int>(kind)));
  if (count > most)
    return report(ACL_ERROR_RT_PARAM_INVALID, str(call, ": ", count, " bytes do not fit into destMax = ", most));
  if (!dst || !src) return null_pointer(call, dst ? "src" : "dst");
  std::memmove(dst, src, count);
  return ACL_SUCCESS;
}

}  // namespace

aclError aclInit(const char*) try {
  if (initialized.exchange(true)) return report(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: called a second time");
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclFinalize(void) try {
  if (!initialized.exchange(false)) return report(ACL_ERROR_UNINITIALIZE, "aclFinalize: aclInit was not called");
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtSetDevice(int32_t deviceId) try { return check_device("aclrtSetDevice", deviceId); } catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}
aclError aclrtResetDevice(int32_t deviceId) try { return check_device("aclrtResetDevice", deviceId); } catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}
aclError aclrtSynchronizeDevice(void) { return ACL_SUCCESS; }

aclError aclrtGetDevice(int32_t* deviceId) try {
  if (!deviceId) return null_pointer("aclrtGetDevice", "deviceId");
  *deviceId = 0;
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtGetDeviceCount(uint32_t* count) try {
  if (!count) return null_pointer("aclrtGetDeviceCount", "count");
  *count = 1;
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) try {
  if (!context) return null_pointer("aclrtCreateContext", "context");
  if (const aclError e = check_device("aclrtCreateContext", deviceId)) return e;
  *context = new Mark;
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtDestroyContext(aclrtContext context) try {
  if (!context) return null_pointer("aclrtDestroyContext", "context");
  delete static_cast<Mark*>(context);
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtSetCurrentContext(aclrtContext context) try {
  return context ? ACL_SUCCESS : null_pointer("aclrtSetCurrentContext", "context");
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtCreateStream(aclrtStream* stream) try {
  if (!stream) return null_pointer("aclrtCreateStream", "stream");
  *stream = new Mark;
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtDestroyStream(aclrtStream stream) try {
  if (!stream) return null_pointer("aclrtDestroyStream", "stream");
  delete static_cast<Mark*>(stream);
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return allocate("aclrtMalloc", devPtr, size);
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}
aclError aclrtMallocHost(void** hostPtr, size_t size) try {
  return allocate("aclrtMallocHost", hostPtr, size);
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtFree(void* devPtr) try {
  if (!devPtr) return null_pointer("aclrtFree", "devPtr");
  std::free(devPtr);
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtFreeHost(void* hostPtr) try {
  if (!hostPtr) return null_pointer("aclrtFreeHost", "hostPtr");
  std::free(hostPtr);
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) try {
  return copy("aclrtMemcpy", dst, destMax, src, count, kind);
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream) try {
  return copy("aclrtMemcpyAsync", dst, destMax, src, count, kind);
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) try {
  if (!devPtr) return null_pointer("aclrtMemset", "devPtr");
  if (count > maxCount)
    return report(ACL_ERROR_RT_PARAM_INVALID,
                  str("aclrtMemset: ", count, " bytes do not fit into maxCount = ", maxCount));
  std::memset(devPtr, value, count);
  return ACL_SUCCESS;
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION);
}
