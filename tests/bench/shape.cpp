// SPDX-License-Identifier: Apache-2.0
// Channel-first dims to the order of memory, and the shapes that pooling and resizing make.
#include "tests/bench/shape.hpp"

#include "partita/logical_tensor.hpp"
#include "src/base/dtype.hpp"

namespace partita::bench {

const char* name_of(Order order) {
  switch (order) {
    case Order::plain: return "-";
    case Order::ncx: return "ncx";
    case Order::nxc: return "nxc";
  }
  return "-";
}

Dims Shape::stored() const {
  Dims result = dims;
  if (channels_last()) {
    result.erase(1);
    result.push_back(dims[1]);
  }
  return result;
}

Dims Shape::strides() const {
  Dims result = dense_strides(stored());
  if (channels_last()) {
    const int64_t channel = result.back();
    result.erase(result.size() - 1);
    result.insert(1, channel);
  }
  return result;
}

int64_t Shape::elements() const {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

size_t Shape::bytes() const { return bytes_for(dtype, elements()); }

Dims Window::pooled(const Dims& dims) const {
  Dims result = dims;
  for (int i = 2; i < dims.size(); ++i) result[i] = (dims[i] + 2 * pad - kernel) / stride + 1;
  return result;
}

Dims scaled(Dims dims, int64_t factor) {
  for (int i = 2; i < dims.size(); ++i) dims[i] *= factor;
  return dims;
}

Dims one_cell(Dims dims) {
  for (int i = 2; i < dims.size(); ++i) dims[i] = 1;
  return dims;
}

}  // namespace partita::bench
