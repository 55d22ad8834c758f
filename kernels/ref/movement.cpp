// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: Concat, StaticReshape, StaticTranspose, and Reorder/TypeCast, which convert as well.
#include <algorithm>
#include <cstdint>

#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

template <class Unit>
void copy_units(const View& dst, int64_t to, int64_t to_stride, const View& src, int64_t from, int64_t from_stride,
                int64_t n) {
  const Unit* source = static_cast<const Unit*>(src.address(from));
  Unit* target = static_cast<Unit*>(dst.address(to));
  for (int64_t i = 0; i < n; ++i) target[i * to_stride] = source[i * from_stride];
}

/// Equal types are copied bit by bit, others converted.
void copy_run(const View& dst, int64_t to, int64_t to_stride, const View& src, int64_t from, int64_t from_stride,
              int64_t n) {
  const int bits = dst.dtype() == src.dtype() ? bits_of(dst.dtype()) : 0;
  if (bits == 8) return copy_units<uint8_t>(dst, to, to_stride, src, from, from_stride, n);
  if (bits == 16) return copy_units<uint16_t>(dst, to, to_stride, src, from, from_stride, n);
  if (bits == 32) return copy_units<uint32_t>(dst, to, to_stride, src, from, from_stride, n);
  if (bits == 64) return copy_units<uint64_t>(dst, to, to_stride, src, from, from_stride, n);
  double values[kBlock];
  src.read(from, from_stride, n, values);
  dst.write(to, to_stride, n, values);
}

/// dst[base + ..] = src[..] for views of equal dims.
void copy(const View& dst, int64_t base, const View& src) {
  const Runs runs(src.dims, {dst.strides, src.strides}, Order::memory);
  runs.each_in_parallel(
      1,
      [&](const Positions& at, int64_t, int64_t n) {
        copy_run(dst, base + at[0], runs.stride(0), src, at[1], runs.stride(1), n);
      },
      !dst.packed());
}

}  // namespace

Status convert(const Problem& problem, Args args) {
  copy(out_view(problem, args, 0), 0, in_view(problem, args, 0));
  return {};
}

Status concat(const Problem& problem, Args args) {
  const View dst = out_view(problem, args, 0);
  const auto axis = normal_axis(problem.attrs.i64(Attr::axis), dst.rank());
  if (!axis)
    return fail(Code::invalid_arguments, str("`axis` must be in [-rank, rank), found ", problem.attrs.i64(Attr::axis)));
  int64_t start = 0;
  for (size_t i = 0; i < problem.in.size(); ++i) {
    const View src = in_view(problem, args, static_cast<int>(i));
    copy(dst, start * dst.strides[*axis], src);
    start += src.dims[*axis];
  }
  return {};
}

Status transpose(const Problem& problem, Args args) {
  const View dst = out_view(problem, args, 0);
  View src = in_view(problem, args, 0);
  Dims order = problem.attrs.dims(Attr::order);
  if (order.empty()) {
    for (int i = src.rank(); i-- > 0;) order.push_back(i);
  }
  for (int64_t& axis : order) axis = axis < 0 ? axis + src.rank() : axis;
  src.strides = permuted(src.strides, order);
  src.dims = permuted(src.dims, order);
  copy(dst, 0, src);
  return {};
}

Status reshape(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0), dst = out_view(problem, args, 0);
  const Runs from(src.dims, {src.strides}, Order::row_major), to(dst.dims, {dst.strides}, Order::row_major);
  const auto part = [&](int64_t begin, int64_t end) {
    from.range(begin, end, {}, [&](const Positions& source, int64_t done, int64_t n) {
      to.range(done, done + n, {}, [&](const Positions& target, int64_t at, int64_t count) {
        const int64_t position = source[0] + (at - done) * from.stride(0);
        copy_run(dst, target[0], to.stride(0), src, position, from.stride(0), count);
      });
    });
  };
  if (dst.packed()) {
    part(0, from.count());
  } else {
    parallel_for(from.count(), 1, part);
  }
  return {};
}

}  // namespace partita::ref
