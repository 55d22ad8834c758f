// SPDX-License-Identifier: Apache-2.0
// What stands behind the InfiniCore door's handles and descriptors.
#pragma once

#include "partita/compat/infiniop/infiniop.h"
#include "partita/compat/infiniop/infinirt.h"
#include "src/compat/pooling.hpp"

struct InfiniopHandle {
  infiniDevice_t device = INFINI_DEVICE_CPU;
};

struct InfiniopTensorDescriptor {
  infiniDtype_t type;
  partita::Dims dims, strides;
};

struct InfiniopDescriptor {
  partita::OpKind kind;
  std::shared_ptr<const partita::compat::PoolingProgram> program;  ///< null where the result is empty
};

namespace partita::compat::infiniop {

/// What a failure of Partita is called here.
constexpr infiniStatus_t status_of(Code code) {
  switch (code) {
    case Code::success: return INFINI_STATUS_SUCCESS;
    case Code::unimplemented: return INFINI_STATUS_NOT_IMPLEMENTED;
    case Code::invalid_shape: return INFINI_STATUS_BAD_TENSOR_SHAPE;
    case Code::invalid_data_type: return INFINI_STATUS_BAD_TENSOR_DTYPE;
    case Code::invalid_arguments:
    case Code::invalid_graph_op: return INFINI_STATUS_BAD_PARAM;
    case Code::out_of_memory:
    case Code::runtime_error:
    case Code::invalid_graph: break;
  }
  return INFINI_STATUS_INTERNAL_ERROR;
}

}  // namespace partita::compat::infiniop
