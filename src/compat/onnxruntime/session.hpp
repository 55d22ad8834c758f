// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's C interface in small pieces: failures, attributes, tensors, and its threads as an executor.
#pragma once

#include <onnxruntime_c_api.h>

#include <optional>
#include <string>
#include <vector>

#include "partita/executor.hpp"
#include "partita/logical_tensor.hpp"
#include "partita/status.hpp"
#include "src/base/threads.hpp"

namespace partita::compat::onnxruntime {

/// The interface of the process that loaded this library; set once, before any operator is made.
const OrtApi& ort();
void set_ort(const OrtApi* api);

/// Null for success, as ONNX Runtime has it.
OrtStatus* ort_status(const Status& status, const char* op);
/// Takes the status over.
Status taken(OrtStatus* status);

/// Undefined where Partita has none.
Dtype dtype_of(ONNXTensorElementDataType type);

/// Attributes of a node. Absent where the node has none of that name, or one of another type.
std::vector<int64_t> integers(const OrtKernelInfo* info, const char* name);
std::optional<int64_t> integer(const OrtKernelInfo* info, const char* name);
std::optional<std::string> text(const OrtKernelInfo* info, const char* name);

/// The dims the graph tells of an output of the node, -1 where it does not; absent where not even their number is told.
Result<std::optional<Dims>> output_dims(const OrtKernelInfo* info, size_t index);

/// An input of a running node.
struct Input {
  Dtype dtype = Dtype::undef;
  Dims dims;
  const void* data = nullptr;
};
Result<Input> input(const OrtKernelContext* context, size_t index);
/// Makes the output with these dims.
Result<void*> output(OrtKernelContext* context, size_t index, const Dims& dims);

/// The session's intra-op threads, for the time of one call.
class SessionThreads : public executor {
 public:
  explicit SessionThreads(OrtKernelContext* context);
  /// As many as the machine gives this process: the interface does not tell how many the session has.
  int threads() const override { return threads_; }
  void run(int parts, const std::function<void(int)>& part) override;

 private:
  OrtKernelContext* context_;
  int threads_;
};

}  // namespace partita::compat::onnxruntime
