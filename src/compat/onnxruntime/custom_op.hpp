// SPDX-License-Identifier: Apache-2.0
// CustomOp: an OrtCustomOp whose kernels are objects of ours.
#pragma once

#include <memory>

#include "src/compat/onnxruntime/session.hpp"

namespace partita::compat::onnxruntime {

/// What ONNX Runtime makes of a node, once; compute may be called by several threads at once.
class NodeKernel {
 public:
  virtual ~NodeKernel() = default;
  virtual Status compute(OrtKernelContext* context) = 0;
};

/// A row of the table of operators: what ONNX Runtime asks about it. An empty list is one
/// variadic port of any types.
struct CustomOp : OrtCustomOp {
  using Make = Result<std::unique_ptr<NodeKernel>> (*)(const OrtKernelInfo* info, ONNXTensorElementDataType type);
  using Types = std::vector<ONNXTensorElementDataType>;

  CustomOp(const char* name, ONNXTensorElementDataType type, Types inputs, Types outputs, Make make);

  const char* name;
  ONNXTensorElementDataType type;  ///< given to `make`
  Types inputs, outputs;
  Make make;
};

Result<std::unique_ptr<NodeKernel>> make_max_pool_grad(const OrtKernelInfo* info, ONNXTensorElementDataType type);
Result<std::unique_ptr<NodeKernel>> make_average_pool_grad(const OrtKernelInfo* info, ONNXTensorElementDataType type);
Result<std::unique_ptr<NodeKernel>> make_graph(const OrtKernelInfo* info, ONNXTensorElementDataType type);

}  // namespace partita::compat::onnxruntime
