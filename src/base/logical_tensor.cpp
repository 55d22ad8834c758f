// SPDX-License-Identifier: Apache-2.0
// logical_tensor: construction, size, equality and text.
#include "partita/logical_tensor.hpp"

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

constexpr int64_t kTooMany = std::numeric_limits<int64_t>::max();

int64_t add_or_max(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kTooMany : sum;
}

int64_t multiply_or_max(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMany : product;
}

/// Elements a buffer must hold: the largest dim times its stride, and never less than the distance to the last element.
int64_t buffer_elements(const Dims& dims, const Dims& strides) {
  int64_t largest = 1, last = 0;
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    const int64_t stride = dims[i] == 1 ? 1 : strides[i];
    largest = std::max(largest, multiply_or_max(dims[i], stride));
    last = add_or_max(last, multiply_or_max(dims[i] - 1, stride));
  }
  return std::max(largest, add_or_max(last, 1));
}

}  // namespace

logical_tensor::logical_tensor(uint64_t id, Dtype dtype, Layout layout) : id(id), dtype(dtype), layout(layout) {}

logical_tensor::logical_tensor(uint64_t id, Dtype dtype, const Dims& dims, Layout layout, Property property)
    : id(id), dtype(dtype), layout(layout), property(property), rank_known(true), dims(dims) {
  if (layout != Layout::strided) return;
  const bool known = std::none_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; });
  strides = known ? dense_strides(dims) : Dims(dims.size(), kUnknownDim);
}

logical_tensor::logical_tensor(uint64_t id, Dtype dtype, const Dims& dims, const Dims& strides, Property property)
    : id(id),
      dtype(dtype),
      layout(Layout::strided),
      property(property),
      rank_known(true),
      dims(dims),
      strides(strides) {}

bool logical_tensor::shape_known() const { return rank_known && all_known(dims); }

bool logical_tensor::strides_known() const {
  return layout == Layout::strided && rank_known && strides.size() == dims.size() && all_known(strides);
}

int64_t logical_tensor::elements() const {
  PT_ASSERT(shape_known());
  return partita::elements(dims);
}

size_t logical_tensor::size_bytes() const {
  PT_ASSERT(shape_known());
  const int64_t count = strides_known() ? buffer_elements(dims, strides) : buffer_elements(dims, dense_strides(dims));
  // bytes_for would overflow beyond this; no buffer of that size exists.
  if (count > kTooMany / 8) return std::numeric_limits<size_t>::max();
  return bytes_for(dtype, count);
}

std::string logical_tensor::text() const { return str(name_of(dtype), "[", rank_known ? text_of(dims) : "?", "]"); }

bool operator==(const logical_tensor& a, const logical_tensor& b) {
  if (a.id != b.id || a.dtype != b.dtype || a.layout != b.layout || a.property != b.property) return false;
  if (a.rank_known != b.rank_known || (a.rank_known && !(a.dims == b.dims))) return false;
  if (a.layout == Layout::strided && !(a.strides == b.strides)) return false;
  return a.layout != Layout::opaque || a.layout_id == b.layout_id;
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (int i = dims.size() - 2; i >= 0; --i) {
    strides[i] = multiply_or_max(strides[i + 1], std::max<int64_t>(1, dims[i + 1]));
  }
  return strides;
}

}  // namespace partita
