// SPDX-License-Identifier: Apache-2.0
// A client of the Ascend door: tensors over images, calls in two phases.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "tests/compat/image.hpp"

namespace partita::test {

inline aclDataType acl_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return ACL_FLOAT;
    case Dtype::f16: return ACL_FLOAT16;
    case Dtype::bf16: return ACL_BF16;
    case Dtype::s32: return ACL_INT32;
    case Dtype::s64: return ACL_INT64;
    default: return ACL_DT_UNDEFINED;
  }
}

using TensorPtr = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)>;
using ListPtr = std::unique_ptr<aclIntArray, aclnnStatus (*)(const aclIntArray*)>;

inline TensorPtr acl_tensor(Image& image, aclFormat format) {
  const int64_t storage = image.storage_elements();
  return {aclCreateTensor(image.dims.begin(), static_cast<uint64_t>(image.dims.size()), acl_type(image.dtype),
                          image.strides.begin(), image.offset, format, &storage, 1, image.storage.data()),
          aclDestroyTensor};
}

inline ListPtr acl_list(const Dims& values) {
  return {aclCreateIntArray(values.begin(), static_cast<uint64_t>(values.size())), aclDestroyIntArray};
}

/// Memory of exactly the size the first call said.
class Workspace {
 public:
  explicit Workspace(uint64_t bytes) {
    if (bytes > 0) {
      EXPECT_EQ(aclrtMalloc(&data_, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    }
  }
  ~Workspace() {
    if (data_) aclrtFree(data_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

inline std::string last_error() { return aclGetRecentErrMsg() ? aclGetRecentErrMsg() : ""; }

/// Runs the second call with the workspace that the first one asked for.
template <class Second>
aclnnStatus run_second(Second second, uint64_t workspace_size, aclOpExecutor* executor) {
  const Workspace workspace(workspace_size);
  return second(workspace.data(), workspace_size, executor, nullptr);
}

}  // namespace partita::test
