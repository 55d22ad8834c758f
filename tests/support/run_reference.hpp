// SPDX-License-Identifier: Apache-2.0
// Runs the reference of one operator on tensors written down as numbers:
//   run(OpKind::ReLU, {}, {f32({2}, {-1, 1})}, {f32({2})})[0]   gives   {0, 1}
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/ref/reference.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {

using Numbers = std::vector<double>;
using AttrList = std::vector<std::pair<Attr, AttrValue>>;

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

/// A tensor with its elements in row-major order, however it lies in memory.
struct Sample {
  TensorDesc desc;
  Numbers values;

  int64_t position(int64_t index) const {
    int64_t at = desc.offset;
    for (int axis = desc.dims.size(); axis-- > 0; index /= desc.dims[axis])
      at += index % desc.dims[axis] * desc.strides[axis];
    return at;
  }
  size_t bytes() const { return bytes_for(desc.dtype, desc.offset + span_of(desc.dims, desc.strides)); }
};

/// Dense; without values the tensor is filled with NaN (an output).
inline Sample sample(Dtype dtype, const Dims& dims, Numbers values = {}) {
  if (values.empty()) values.assign(static_cast<size_t>(elements(dims)), kNan);
  EXPECT_EQ(static_cast<int64_t>(values.size()), elements(dims));
  return {{dtype, dims, dense_strides(dims), 0}, std::move(values)};
}

inline Sample f32(const Dims& dims, Numbers values = {}) { return sample(Dtype::f32, dims, std::move(values)); }
inline Sample s32(const Dims& dims, Numbers values = {}) { return sample(Dtype::s32, dims, std::move(values)); }

inline Sample random_f32(const Dims& dims, Random& random, double low = -1, double high = 1) {
  Numbers values(static_cast<size_t>(elements(dims)));
  for (double& x : values) x = static_cast<float>(random.real(low, high));
  return f32(dims, values);
}

/// The same elements with gaps between them, the last axis outermost in memory and three elements in front.
inline Sample scattered(Sample s) {
  int64_t stride = 2;
  for (int axis = 0; axis < s.desc.dims.size(); ++axis) {
    s.desc.strides[axis] = stride;
    stride = stride * std::max<int64_t>(s.desc.dims[axis], 1) + 1;
  }
  s.desc.offset = 3;
  return s;
}

/// Axes n, c, x.. reordered to n, x.., c: how the same tensor is described with data_format NXC. Lies as before.
inline Sample as_nxc(Sample s) {
  Dims order{0};
  for (int axis = 2; axis < s.desc.dims.size(); ++axis) order.push_back(axis);
  order.push_back(1);
  Sample moved = s;
  moved.desc.dims = permuted(s.desc.dims, order);
  moved.desc.strides = permuted(s.desc.strides, order);
  for (int64_t i = 0; i < elements(s.desc.dims); ++i) {
    int64_t index = 0, rest = i;
    Dims place = s.desc.dims;
    for (int axis = s.desc.dims.size(); axis-- > 0; rest /= s.desc.dims[axis]) place[axis] = rest % s.desc.dims[axis];
    for (int axis = 0; axis < order.size(); ++axis) {
      index = index * moved.desc.dims[axis] + place[static_cast<int>(order[axis])];
    }
    moved.values[static_cast<size_t>(index)] = s.values[static_cast<size_t>(i)];
  }
  return moved;
}

/// The elements in the order n, c, x.. of what a run with data_format NXC wrote.
inline Numbers from_nxc(const Dims& nxc, const Numbers& values) {
  const int64_t channels = nxc.back(), images = nxc[0],
                places = elements(nxc) / std::max<int64_t>(channels * images, 1);
  Numbers result;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t x = 0; x < places; ++x)
        result.push_back(values[static_cast<size_t>((n * places + x) * channels + c)]);
    }
  }
  return result;
}

inline Attrs attrs_of(const AttrList& list) {
  Attrs attrs;
  for (const auto& [attr, value] : list) attrs.set(attr, value);
  return attrs;
}

/// The elements of every output, row-major.
inline std::vector<Numbers> run(OpKind kind, const AttrList& attrs, const std::vector<Sample>& in,
                                const std::vector<Sample>& out) {
  Problem problem;
  problem.op = kind;
  problem.attrs = attrs_of(attrs);
  std::vector<std::vector<std::byte>> memory;
  for (const Sample& s : in) problem.in.push_back(s.desc);
  for (const Sample& s : out) problem.out.push_back(s.desc);
  for (const std::vector<Sample>* side : {&in, &out}) {
    for (const Sample& s : *side) {
      memory.emplace_back(s.bytes());
      for (int64_t i = 0; i < elements(s.desc.dims); ++i) {
        store_from_double(memory.back().data(), s.desc.dtype, s.position(i), s.values[static_cast<size_t>(i)]);
      }
    }
  }
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (i < in.size()) inputs.push_back(memory[i].data());
    if (i >= in.size()) outputs.push_back(memory[i].data());
  }
  const Reference reference = reference_of(kind);
  EXPECT_NE(reference, nullptr) << name_of(kind);
  if (!reference) return {};
  const Status status = reference(problem, {inputs, outputs});
  EXPECT_TRUE(status.ok()) << status.text();
  std::vector<Numbers> results;
  for (size_t port = 0; port < out.size(); ++port) {
    Numbers& values = results.emplace_back();
    for (int64_t i = 0; i < elements(out[port].desc.dims); ++i) {
      values.push_back(load_as_double(outputs[port], out[port].desc.dtype, out[port].position(i)));
    }
  }
  return results;
}

/// Equal up to `tolerance`, relative above 1; NaN equals NaN.
inline void expect_near(const Numbers& got, const Numbers& expected, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))) continue;
    EXPECT_LE(std::abs(got[i] - expected[i]), tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i << ": got " << got[i] << ", expected " << expected[i];
  }
}

inline double dot(const Numbers& a, const Numbers& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

using Int64s = std::vector<int64_t>;

}  // namespace partita::test
