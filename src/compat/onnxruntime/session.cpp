// SPDX-License-Identifier: Apache-2.0
// Reading of nodes and tensors through ONNX Runtime's C interface.
#include "src/compat/onnxruntime/session.hpp"

#include <memory>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita::compat::onnxruntime {
namespace {

const OrtApi* the_api = nullptr;

/// Releases what an OrtApi function made.
template <class T>
using Owned = std::unique_ptr<T, void(ORT_API_CALL*)(T*)>;

template <class T>
Owned<T> owned(T* object, void(ORT_API_CALL* release)(T*)) {
  return {object, release};
}

/// True where the call succeeded; a failure is an absent attribute.
bool found(OrtStatus* status) {
  if (status) ort().ReleaseStatus(status);
  return status == nullptr;
}

OrtErrorCode code_of(Code code) {
  switch (code) {
    case Code::unimplemented: return ORT_NOT_IMPLEMENTED;
    case Code::out_of_memory:
    case Code::runtime_error: return ORT_RUNTIME_EXCEPTION;
    default: return ORT_INVALID_ARGUMENT;
  }
}

Result<Dims> dims_of(const OrtTensorTypeAndShapeInfo* info) {
  size_t rank = 0;
  PT_TRY(taken(ort().GetDimensionsCount(info, &rank)));
  if (rank > static_cast<size_t>(kMaxRank))
    return fail(Code::invalid_shape, str("a tensor has at most ", kMaxRank, " dims, got ", rank));
  Dims dims(static_cast<int>(rank), 0);
  PT_TRY(taken(ort().GetDimensions(info, dims.begin(), rank)));
  return dims;
}

}  // namespace

const OrtApi& ort() { return *the_api; }
void set_ort(const OrtApi* api) { the_api = api; }

OrtStatus* ort_status(const Status& status, const char* op) try {
  return status.ok() ? nullptr : ort().CreateStatus(code_of(status.code()), str(op, ": ", status.text()).c_str());
} catch (...) {
  return ort().CreateStatus(code_of(status.code()), "out of memory");
}

Status taken(OrtStatus* status) {
  if (!status) return {};
  Status s = fail(Code::runtime_error, ort().GetErrorMessage(status));
  ort().ReleaseStatus(status);
  return s;
}

Dtype dtype_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return Dtype::f32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return Dtype::f16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return Dtype::bf16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return Dtype::f64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return Dtype::s32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return Dtype::s64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return Dtype::s8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return Dtype::u8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: return Dtype::boolean;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2: return Dtype::f8_e5m2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN: return Dtype::f8_e4m3;
    default: return Dtype::undef;
  }
}

std::vector<int64_t> integers(const OrtKernelInfo* info, const char* name) {
  size_t count = 0;
  if (!found(ort().KernelInfoGetAttributeArray_int64(info, name, nullptr, &count))) return {};
  std::vector<int64_t> list(count);
  if (!found(ort().KernelInfoGetAttributeArray_int64(info, name, list.data(), &count))) return {};
  return list;
}

std::optional<int64_t> integer(const OrtKernelInfo* info, const char* name) {
  int64_t value = 0;
  if (!found(ort().KernelInfoGetAttribute_int64(info, name, &value))) return {};
  return value;
}

std::optional<std::string> text(const OrtKernelInfo* info, const char* name) {
  size_t size = 0;  // with the final zero
  if (!found(ort().KernelInfoGetAttribute_string(info, name, nullptr, &size)) || size == 0) return {};
  std::string value(size, '\0');
  if (!found(ort().KernelInfoGetAttribute_string(info, name, value.data(), &size))) return {};
  value.resize(size - 1);
  return value;
}

Result<std::optional<Dims>> output_dims(const OrtKernelInfo* info, size_t index) {
  OrtTypeInfo* type = nullptr;
  PT_TRY(taken(ort().KernelInfo_GetOutputTypeInfo(info, index, &type)));
  const auto type_owner = owned(type, ort().ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo* shape = nullptr;
  PT_TRY(taken(ort().CastTypeInfoToTensorInfo(type, &shape)));
  if (!shape) return std::optional<Dims>();
  PT_ASSIGN(const Dims dims, dims_of(shape));
  return std::optional<Dims>(dims);
}

Result<Input> input(const OrtKernelContext* context, size_t index) {
  const OrtValue* value = nullptr;
  PT_TRY(taken(ort().KernelContext_GetInput(context, index, &value)));
  OrtTensorTypeAndShapeInfo* info = nullptr;
  PT_TRY(taken(ort().GetTensorTypeAndShape(value, &info)));
  const auto info_owner = owned(info, ort().ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  PT_TRY(taken(ort().GetTensorElementType(info, &type)));
  Input made;
  made.dtype = dtype_of(type);
  PT_ASSIGN(made.dims, dims_of(info));
  void* data = nullptr;
  PT_TRY(taken(ort().GetTensorMutableData(const_cast<OrtValue*>(value), &data)));
  made.data = data;
  return made;
}

Result<void*> output(OrtKernelContext* context, size_t index, const Dims& dims) {
  OrtValue* value = nullptr;
  PT_TRY(taken(ort().KernelContext_GetOutput(context, index, dims.begin(), static_cast<size_t>(dims.size()), &value)));
  void* data = nullptr;
  PT_TRY(taken(ort().GetTensorMutableData(value, &data)));
  return data;
}

SessionThreads::SessionThreads(OrtKernelContext* context) : context_(context), threads_(thread_count()) {}

void SessionThreads::run(int parts, const std::function<void(int)>& part) {
  using Part = const std::function<void(int)>;
  const auto call = [](void* part, size_t number) { (*static_cast<Part*>(part))(static_cast<int>(number)); };
  OrtStatus* failed = ort().KernelContext_ParallelFor(context_, call, static_cast<size_t>(parts), 0,
                                                      const_cast<std::function<void(int)>*>(&part));
  if (!failed) return;
  ort().ReleaseStatus(failed);  // it refuses before any part runs: they run here
  for (int p = 0; p < parts; ++p) part(p);
}

}  // namespace partita::compat::onnxruntime
