// SPDX-License-Identifier: Apache-2.0
// MatMul with numpy's rules for batch axes and vectors, and a bias broadcast against the result.
#include <utility>

#include "kernels/ref/product.hpp"
#include "kernels/ref/references.hpp"
#include "kernels/ref/runs.hpp"
#include "kernels/ref/view.hpp"
#include "src/base/shape.hpp"

namespace partita::ref {
namespace {

/// Swaps the last two axes of a matrix; vectors stay as they are.
void transpose_last(View& view) {
  const int rank = view.rank();
  if (rank < 2) return;
  std::swap(view.dims[rank - 1], view.dims[rank - 2]);
  std::swap(view.strides[rank - 1], view.strides[rank - 2]);
}

void insert_axis(View& view, int at) {
  view.dims.insert(at, 1);
  view.strides.insert(at, 0);
}

/// The batch axes of a matrix, broadcast to `batch`; strides only.
Dims batch_strides(const View& matrix, const Dims& batch) {
  Dims strides(batch.size(), 0);
  const int missing = batch.size() - (matrix.rank() - 2);
  for (int i = 0; i < matrix.rank() - 2; ++i) strides[missing + i] = matrix.dims[i] == 1 ? 0 : matrix.strides[i];
  return strides;
}

int64_t from_end(const Dims& list, int back) { return list[list.size() - back]; }

}  // namespace

Status matmul(const Problem& problem, Args args) {
  View left = in_view(problem, args, 0), right = in_view(problem, args, 1), dst = out_view(problem, args, 0);
  const bool has_bias = problem.in.size() > 2;
  View bias = has_bias ? broadcast_to(in_view(problem, args, 2), dst.dims) : dst;
  if (problem.attrs.flag_or(Attr::transpose_a, false)) transpose_last(left);
  if (problem.attrs.flag_or(Attr::transpose_b, false)) transpose_last(right);
  const bool row = left.rank() == 1, column = right.rank() == 1;
  if (row) insert_axis(left, 0);
  if (column) insert_axis(right, 1);
  for (View* view : {&dst, &bias}) {
    if (row) insert_axis(*view, view->rank() - (column ? 0 : 1));
    if (column) insert_axis(*view, view->rank());
  }
  Dims batch = dst.dims;
  batch.erase(batch.size() - 1);
  batch.erase(batch.size() - 1);
  const Runs places(
      batch,
      {batch_strides(left, batch), batch_strides(right, batch), batch_strides(dst, batch), batch_strides(bias, batch)},
      Order::row_major);

  Product product;
  product.batches = places.count();
  product.rows = from_end(dst.dims, 2);
  product.columns = from_end(dst.dims, 1);
  product.depth = left.dims.back();
  product.parallel = !dst.packed();
  product.exact = dst.dtype() == Dtype::f64;
  product.left = [&](int64_t b, int64_t i, int64_t k, int64_t n, float* to) {
    left.read(places.at(b)[0] + i * from_end(left.strides, 2) + k * left.strides.back(), left.strides.back(), n, to);
  };
  product.right = [&](int64_t b, int64_t k, int64_t j, int64_t n, float* to) {
    right.read(places.at(b)[1] + k * from_end(right.strides, 2) + j * right.strides.back(), right.strides.back(), n,
               to);
  };
  product.store = [&](int64_t b, int64_t i, int64_t j, int64_t n, double* sums) {
    const Positions at = places.at(b);
    if (has_bias) {
      double added[kBlock];
      bias.read(at[3] + i * from_end(bias.strides, 2) + j * bias.strides.back(), bias.strides.back(), n, added);
      for (int64_t x = 0; x < n; ++x) sums[x] += added[x];
    }
    dst.write(at[2] + i * from_end(dst.strides, 2) + j * dst.strides.back(), dst.strides.back(), n, sums);
  };
  multiply_all(product);
  return {};
}

}  // namespace partita::ref
