// SPDX-License-Identifier: Apache-2.0
// Operators whose result depends on where an element is: GenIndex (its coordinate) and Dropout (its index).
#include <cstring>

#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/philox.hpp"
#include "src/base/shape.hpp"

namespace partita::ref {
namespace {

/// f64 would round seeds beyond 2^53.
int64_t exact_s64(const View& view) {
  if (view.dtype() != Dtype::s64) return static_cast<int64_t>(view.at(0));
  int64_t value;
  std::memcpy(&value, view.address(0), sizeof value);
  return value;
}

}  // namespace

Status gen_index(const Problem& problem, Args args) {
  const View dst = out_view(problem, args, 0);
  const int axis = normal_axis(problem.attrs.i64(Attr::axis), dst.rank()).value_or(0);
  Dims along(dst.rank(), 0);
  if (dst.rank() > 0) along[axis] = 1;
  const Runs runs(dst.dims, {dst.strides, along}, Order::memory);  // operand 1's position is the coordinate itself
  runs.each_in_parallel(2, [&](const Positions& at, int64_t, int64_t n) {
    double index[kBlock];
    for (int64_t i = 0; i < n; ++i) index[i] = static_cast<double>(at[1] + i * runs.stride(1));
    dst.write(at[0], runs.stride(0), n, index);
  });
  return {};
}

Status dropout(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0), dst = out_view(problem, args, 0);
  const int64_t seed = exact_s64(in_view(problem, args, 1)), offset = exact_s64(in_view(problem, args, 2));
  const float probability = static_cast<float>(in_view(problem, args, 3).at(0));
  const bool wants_mask = problem.out.size() > 1;
  const View mask = wants_mask ? out_view(problem, args, 1) : dst;
  const Runs runs(dst.dims, {dst.strides, src.strides, mask.strides}, Order::row_major);
  runs.each_in_parallel(20, [&](const Positions& at, int64_t first, int64_t n) {
    double x[kBlock], keep[kBlock];
    src.read(at[1], runs.stride(1), n, x);
    std::array<uint32_t, 4> words{};
    for (int64_t i = 0; i < n; ++i) {
      const int64_t index = first + i;
      if (i == 0 || index % 4 == 0) words = dropout_words(seed, offset, index / 4);
      keep[i] = unit_float(words[static_cast<size_t>(index % 4)]) >= probability ? 1 : 0;
      x[i] = keep[i] != 0 ? x[i] / (1.0 - probability) : 0;
    }
    dst.write(at[0], runs.stride(0), n, x);
    if (wants_mask) mask.write(at[2], runs.stride(2), n, keep);
  });
  return {};
}

}  // namespace partita::ref
