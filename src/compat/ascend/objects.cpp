// SPDX-License-Identifier: Apache-2.0
// aclTensor, aclIntArray, and the text of the last failure.
#include "src/compat/ascend/objects.hpp"

#include <algorithm>

#include "src/base/addressable.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

using namespace partita;
using compat::ascend::no_memory;
using compat::ascend::report;

namespace {

constexpr uint64_t kMostDims = 8;
thread_local std::string last_text;
thread_local bool has_failed = false;

/// Why there can be no such tensor; empty where there can.
std::string misfit(const int64_t* dims, uint64_t rank, const int64_t* strides, int64_t offset, const int64_t* storage,
                   uint64_t storage_rank, aclDataType type) {
  if (rank > kMostDims || storage_rank > kMostDims)
    return str("a tensor has at most ", kMostDims, " dims, got ", std::max(rank, storage_rank));
  if ((rank > 0 && !dims) || (storage_rank > 0 && !storage)) return "the dims are null";
  if (aclDataTypeSize(type) == 0) return str("unknown data type ", static_cast<int>(type));
  if (offset < 0) return str("the offset must not be negative, got ", offset);
  // Negative dims are left to the operator, which names them; such a tensor has no last element.
  int64_t room = 1, elements = 1;
  bool empty = false, huge = false;
  for (uint64_t i = 0; i < rank; ++i) {
    if (strides && strides[i] < 0) return str("stride[", i, "] must not be negative, got ", strides[i]);
    empty = empty || dims[i] <= 0;
    huge = huge || __builtin_mul_overflow(elements, dims[i], &elements);
  }
  if (empty) return {};
  if (huge) return str("there is no memory for [", text_of(Dims(std::span(dims, rank))), "]");
  const Dims view(std::span(dims, rank));
  const Dims steps = strides ? Dims(std::span(strides, rank)) : dense_strides(view);
  for (uint64_t i = 0; i < storage_rank; ++i)
    if (storage[i] < 0 || __builtin_mul_overflow(room, storage[i], &room))
      return str("the storage's dims make no size: ", text_of(Dims(std::span(storage, storage_rank))));
  if (!addressable(view, steps) || span_of(view, steps) > room - offset)
    return str("the view ends behind the ", room, " elements of its storage");
  return {};
}

}  // namespace

void* aclTensor::data() const {
  return storage ? static_cast<char*>(storage) + static_cast<size_t>(offset) * aclDataTypeSize(type) : nullptr;
}

namespace partita::compat::ascend {

int32_t report(int32_t code, std::string text) {
  last_text = std::move(text);
  has_failed = true;
  return code;
}

int32_t no_memory(int32_t code) noexcept {
  last_text = "out of memory";  // short enough to need none
  has_failed = true;
  return code;
}

const char* recent_error() { return has_failed ? last_text.c_str() : nullptr; }

}  // namespace partita::compat::ascend

const char* aclGetRecentErrMsg(void) { return compat::ascend::recent_error(); }

size_t aclDataTypeSize(aclDataType type) {
  switch (type) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL: return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16: return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32: return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE: return 8;
    case ACL_DT_UNDEFINED: break;
  }
  return 0;
}

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) try {
  const std::string reason = misfit(viewDims, viewDimsNum, stride, offset, storageDims, storageDimsNum, dataType);
  if (!reason.empty()) {
    report(ACL_ERROR_INVALID_PARAM, "aclCreateTensor: " + reason);
    return nullptr;
  }
  const Dims dims(std::span(viewDims, viewDimsNum));
  const Dims strides = stride ? Dims(std::span(stride, viewDimsNum)) : dense_strides(dims);
  return new aclTensor{dims, strides, dataType, format, offset, tensorData};
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION), nullptr;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) try {
  delete tensor;
  return ACLNN_SUCCESS;
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) try {
  if (!value && size > 0) {
    report(ACL_ERROR_INVALID_PARAM, "aclCreateIntArray: value is null");
    return nullptr;
  }
  return new aclIntArray{{value, value + size}};
} catch (...) {
  return no_memory(ACL_ERROR_RT_MEMORY_ALLOCATION), nullptr;
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) try {
  delete array;
  return ACLNN_SUCCESS;
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}
