// SPDX-License-Identifier: Apache-2.0
// The gradient of an average pooling through the Ascend interface: nothing in this program is of Partita.
#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"

// Leaves main with the last failure's text.
#define CHECK(call)                                                                                                   \
  do {                                                                                                                \
    if (const int code = (call)) return std::cerr << #call << ": " << code << ' ' << aclGetRecentErrMsg() << '\n', 1; \
  } while (false)

aclTensor* tensor_of(const std::vector<int64_t>& dims, void* data) {
  return aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_NCHW, dims.data(), dims.size(),
                         data);
}

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream;
  CHECK(aclrtCreateStream(&stream));

  // Memory of the device, and the gradient of the forward result in it.
  const std::vector<int64_t> small{1, 2, 2, 2}, large{1, 2, 4, 4};
  const std::vector<float> gradient(8, 4.0f);
  void *gradient_data, *result_data;
  CHECK(aclrtMalloc(&gradient_data, 8 * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&result_data, 32 * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(gradient_data, 8 * sizeof(float), gradient.data(), 8 * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE));

  // The forward source (`self`) only tells its shape; any tensor of that shape will do.
  aclTensor *grad_output = tensor_of(small, gradient_data), *grad_input = tensor_of(large, result_data);
  const int64_t twos[] = {2, 2}, zeros[] = {0, 0};
  aclIntArray *kernel = aclCreateIntArray(twos, 2), *padding = aclCreateIntArray(zeros, 2);

  // First call: checks everything and says how much memory the second one needs.
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnAvgPool2dBackwardGetWorkspaceSize(grad_output, grad_input, kernel, kernel, padding, /*ceilMode=*/false,
                                               /*countIncludePad=*/true, /*divisorOverride=*/0, /*cubeMathType=*/0,
                                               grad_input, &workspace_size, &executor));
  void* workspace = nullptr;
  if (workspace_size > 0) CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnAvgPool2dBackward(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  std::vector<float> result(32);
  CHECK(aclrtMemcpy(result.data(), 32 * sizeof(float), result_data, 32 * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
  std::cout << "gradInput[0] = " << result[0] << '\n';

  aclDestroyTensor(grad_output);
  aclDestroyTensor(grad_input);
  aclDestroyIntArray(kernel);
  aclDestroyIntArray(padding);
  if (workspace) CHECK(aclrtFree(workspace));
  CHECK(aclrtFree(gradient_data));
  CHECK(aclrtFree(result_data));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  for (const float value : result)
    if (value != 1.0f) return 1;
  return 0;
}
