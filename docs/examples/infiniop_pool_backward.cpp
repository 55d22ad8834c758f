// SPDX-License-Identifier: Apache-2.0
// The gradient of an average pooling through the InfiniCore interface, into a strided tensor.
#include <iostream>
#include <vector>

#include "infinicore.h"
#include "infiniop/handle.h"
#include "infiniop/ops/averagepool_backward.h"
#include "infiniop/tensor_descriptor.h"

// Leaves main with the status.
#define CHECK(call)                                                                        \
  do {                                                                                     \
    if (const int status = (call)) return std::cerr << #call << ": " << status << '\n', 1; \
  } while (false)

int main() {
  infiniopHandle_t handle;
  CHECK(infiniopCreateHandle(&handle));

  // The result lies in rows of 8 elements, of which 4 are its own.
  const size_t small[] = {1, 2, 2, 2}, large[] = {1, 2, 4, 4};
  const ptrdiff_t rows_of_8[] = {64, 32, 8, 1};
  infiniopTensorDescriptor_t grad_output_desc, grad_input_desc, input_desc;
  CHECK(infiniopCreateTensorDescriptor(&grad_output_desc, 4, small, nullptr, INFINI_DTYPE_F32));
  CHECK(infiniopCreateTensorDescriptor(&grad_input_desc, 4, large, rows_of_8, INFINI_DTYPE_F32));
  CHECK(infiniopCreateTensorDescriptor(&input_desc, 4, large, nullptr, INFINI_DTYPE_F32));

  size_t kernel[] = {2, 2}, strides[] = {2, 2}, pads[] = {0, 0};
  infiniopAvgPoolBackwardDescriptor_t desc;
  CHECK(infiniopCreateAvgPoolBackwardDescriptor(handle, &desc, grad_input_desc, grad_output_desc, input_desc, kernel,
                                                strides, pads, /*ceil_mode=*/false));
  CHECK(infiniopDestroyTensorDescriptor(grad_output_desc));
  CHECK(infiniopDestroyTensorDescriptor(grad_input_desc));
  CHECK(infiniopDestroyTensorDescriptor(input_desc));

  size_t workspace_size = 0;
  CHECK(infiniopGetAvgPoolBackwardWorkspaceSize(desc, &workspace_size));
  std::vector<char> workspace(workspace_size);
  const std::vector<float> gradient(8, 4.0f);
  std::vector<float> result(64, -1.0f);
  CHECK(infiniopAvgPoolBackward(desc, workspace.data(), workspace_size, result.data(), gradient.data(),
                                /*input=*/nullptr, /*stream=*/nullptr));
  CHECK(infiniopDestroyAvgPoolBackwardDescriptor(desc));
  CHECK(infiniopDestroyHandle(handle));

  std::cout << "grad_input[0][0][0] =";
  for (size_t x = 0; x < 8; ++x) std::cout << ' ' << result[x];
  std::cout << '\n';
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] != (i % 8 < 4 ? 1.0f : -1.0f)) return 1;
  return 0;
}
