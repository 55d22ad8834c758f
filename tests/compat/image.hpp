// SPDX-License-Identifier: Apache-2.0
// Image: memory of a tensor as a client lays it out, dense or scattered, with what lies around it watched.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "partita/logical_tensor.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/compat/naive_pooling.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {

/// Elements are numbered row-major whatever the strides.
class Image {
 public:
  static Image dense(Dtype dtype, const Dims& dims) { return {dtype, dims, dense_strides(dims), 0}; }
  static Image with_strides(Dtype dtype, const Dims& dims, const Dims& strides) { return {dtype, dims, strides, 0}; }
  /// Axes in random order in memory with gaps between and before them.
  static Image scattered(Dtype dtype, const Dims& dims, Random& random) {
    std::vector<int> order(static_cast<size_t>(dims.size()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random.engine());
    Dims strides(dims.size(), 0);
    int64_t step = random.whole(1, 2);
    for (int axis : order) {
      strides[axis] = step;
      step = step * std::max<int64_t>(1, dims[axis]) + random.whole(0, 3);
    }
    return {dtype, dims, strides, random.whole(0, 5)};
  }

  Dtype dtype;
  Dims dims, strides;
  int64_t offset;  ///< of element 0, in elements
  std::vector<std::byte> storage;

  int64_t elements() const { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies()); }
  int64_t storage_elements() const { return static_cast<int64_t>(storage.size()) * 8 / bits_of(dtype); }
  void* data() { return storage.data() + bytes_for(dtype, offset); }

  double at(int64_t i) const { return load_as_double(storage.data(), dtype, place(i)); }
  void set(int64_t i, double value) { store_from_double(storage.data(), dtype, place(i), value); }
  void fill(const Reals& values) {
    for (int64_t i = 0; i < elements(); ++i) set(i, values[static_cast<size_t>(i)]);
  }
  /// What was stored, with the rounding of the type.
  Reals values() const {
    Reals list(static_cast<size_t>(elements()));
    for (int64_t i = 0; i < elements(); ++i) list[static_cast<size_t>(i)] = at(i);
    return list;
  }
  Reals fill(Random& random, double low = -1, double high = 1) {
    for (int64_t i = 0; i < elements(); ++i) set(i, random.real(low, high));
    return values();
  }
  /// Where the first difference beyond the type's precision is, or which byte outside the elements was written.
  std::string difference(const Reals& expected) const {
    const double step = dtype == Dtype::f32 ? 2e-6 : dtype == Dtype::f16 ? 1e-3 : 8e-3;
    for (int64_t i = 0; i < elements(); ++i) {
      const double want = expected[static_cast<size_t>(i)], got = at(i);
      if (!(std::abs(got - want) <= step * (1 + std::abs(want))))
        return str("element ", i, " is ", got, ", expected ", want);
    }
    std::vector<bool> ours(storage.size());
    for (int64_t i = 0; i < elements(); ++i)
      for (size_t b = 0; b < bytes_for(dtype, 1); ++b) ours[bytes_for(dtype, place(i)) + b] = true;
    for (size_t b = 0; b < storage.size(); ++b)
      if (!ours[b] && storage[b] != kFill) return str("byte ", b, " outside the elements was written");
    return {};
  }

 private:
  static constexpr std::byte kFill{0xff};  // NaN in every float type: what is not written shows

  Image(Dtype dtype, const Dims& dims, const Dims& strides, int64_t offset)
      : dtype(dtype), dims(dims), strides(strides), offset(offset) {
    int64_t last = offset;
    for (int i = 0; i < dims.size(); ++i) last += std::max<int64_t>(0, dims[i] - 1) * strides[i];
    storage.assign(bytes_for(dtype, last + 9), kFill);
  }
  int64_t place(int64_t i) const {
    int64_t at = offset;
    for (int axis = dims.size() - 1; axis >= 0; --axis) {
      at += i % dims[axis] * strides[axis];
      i /= dims[axis];
    }
    return at;
  }
};

}  // namespace partita::test
