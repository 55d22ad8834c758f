// SPDX-License-Identifier: Apache-2.0
// The runtime calls of the Ascend door: devices, streams, memory, and how objects are refused.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "tests/compat/ascend/client.hpp"

namespace partita::test {
namespace {

TEST(ascend_runtime, is_initialized_once_at_a_time) {
  EXPECT_EQ(aclFinalize(), ACL_ERROR_UNINITIALIZE);
  EXPECT_EQ(last_error(), "aclFinalize: aclInit was not called");
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit("acl.json"), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(last_error(), "aclInit: called a second time");
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(ascend_runtime, has_one_device) {
  int32_t device = -1;
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(last_error(), "aclrtSetDevice: there is only device 0, got 1");
  EXPECT_EQ(aclrtResetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDevice(nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetDeviceCount(nullptr), ACL_ERROR_RT_PARAM_INVALID);
}

TEST(ascend_runtime, makes_streams_and_contexts) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  EXPECT_NE(stream, nullptr);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateStream(nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyStream(nullptr), ACL_ERROR_RT_PARAM_INVALID);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateContext(&context, 2), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtCreateContext(nullptr, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetCurrentContext(nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(nullptr), ACL_ERROR_RT_PARAM_INVALID);
}

TEST(ascend_runtime, gives_and_copies_memory) {
  void *device = nullptr, *host = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(device) % 64, 0u);
  ASSERT_EQ(aclrtMallocHost(&host, 8), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(device, 8, 7, 8), ACL_SUCCESS);
  for (aclrtMemcpyKind kind :
       {ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE}) {
    std::memset(host, 0, 8);
    EXPECT_EQ(aclrtMemcpy(host, 8, device, 4, kind), ACL_SUCCESS);
    EXPECT_EQ(std::memcmp(host, "\7\7\7\7\0\0\0\0", 8), 0);
  }
  EXPECT_EQ(aclrtMemcpyAsync(host, 8, device, 8, ACL_MEMCPY_DEVICE_TO_HOST, nullptr), ACL_SUCCESS);
  EXPECT_EQ(static_cast<char*>(host)[7], 7);
  EXPECT_EQ(aclrtMemcpy(host, 8, device, 9, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(last_error(), "aclrtMemcpy: 9 bytes do not fit into destMax = 8");
  EXPECT_EQ(aclrtMemcpy(nullptr, 8, device, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(last_error(), "aclrtMemcpy: dst is null");
  EXPECT_EQ(aclrtMemcpy(host, 8, nullptr, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(host, 8, device, 8, static_cast<aclrtMemcpyKind>(9)), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemset(device, 8, 0, 9), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemset(nullptr, 8, 0, 8), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFreeHost(nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMalloc(&device, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_PARAM_INVALID);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(aclrtMalloc(&device, size_t{1} << 60, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
#endif
}

TEST(ascend_objects, are_not_made_where_they_make_no_sense) {
  const int64_t dims[] = {2, 3}, strides[] = {3, 1}, wide[] = {4, 1}, backward[] = {-3, 1};
  const int64_t storage[] = {6}, many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  float data[6];
  const auto made = [&](const int64_t* d, uint64_t rank, aclDataType type, const int64_t* s, int64_t offset) {
    const TensorPtr t(aclCreateTensor(d, rank, type, s, offset, ACL_FORMAT_ND, storage, 1, data), aclDestroyTensor);
    return t != nullptr;
  };
  EXPECT_TRUE(made(dims, 2, ACL_FLOAT, strides, 0));
  EXPECT_TRUE(made(dims, 2, ACL_FLOAT, nullptr, 0));
  EXPECT_TRUE(made(nullptr, 0, ACL_FLOAT, nullptr, 0));
  EXPECT_FALSE(made(dims, 2, ACL_FLOAT, wide, 0));
  EXPECT_EQ(last_error(), "aclCreateTensor: the view ends behind the 6 elements of its storage");
  const int64_t far[] = {int64_t{1} << 62, int64_t{1} << 62};
  EXPECT_FALSE(made(dims, 2, ACL_FLOAT, far, 0));
  EXPECT_FALSE(made(dims, 2, ACL_FLOAT, strides, std::numeric_limits<int64_t>::max()));
  EXPECT_FALSE(made(dims, 2, ACL_FLOAT, strides, 1));
  EXPECT_FALSE(made(dims, 2, ACL_FLOAT, strides, -1));
  EXPECT_FALSE(made(dims, 2, ACL_FLOAT, backward, 0));
  EXPECT_FALSE(made(many, 9, ACL_FLOAT, nullptr, 0));
  EXPECT_EQ(last_error(), "aclCreateTensor: a tensor has at most 8 dims, got 9");
  EXPECT_FALSE(made(nullptr, 2, ACL_FLOAT, nullptr, 0));
  EXPECT_FALSE(made(dims, 2, ACL_DT_UNDEFINED, nullptr, 0));
  EXPECT_EQ(aclCreateIntArray(nullptr, 2), nullptr);
  EXPECT_EQ(last_error(), "aclCreateIntArray: value is null");
  EXPECT_EQ(aclDestroyIntArray(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensor(nullptr), ACLNN_SUCCESS);
}

TEST(ascend_objects, types_have_sizes) {
  EXPECT_EQ(aclDataTypeSize(ACL_INT8), 1u);
  EXPECT_EQ(aclDataTypeSize(ACL_BF16), 2u);
  EXPECT_EQ(aclDataTypeSize(ACL_FLOAT), 4u);
  EXPECT_EQ(aclDataTypeSize(ACL_INT64), 8u);
  EXPECT_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0u);
}

TEST(ascend_runtime, texts_of_failures_belong_to_their_thread) {
  ASSERT_EQ(aclrtSetDevice(3), ACL_ERROR_RT_INVALID_DEVICEID);
  const char* elsewhere = "";
  std::thread([&] { elsewhere = aclGetRecentErrMsg(); }).join();
  EXPECT_EQ(elsewhere, nullptr);
  EXPECT_EQ(last_error(), "aclrtSetDevice: there is only device 0, got 3");
}

}  // namespace
}  // namespace partita::test
