// SPDX-License-Identifier: Apache-2.0
// Views of MatMul operands. Fewer batch axes are faster, and oneDNN 3.7 writes out of bounds for some batch axes of
// size 1.
#include "kernels/onednn/matmul_views.hpp"

#include <algorithm>

#include "kernels/onednn/view.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

void swap_last_axes(TensorDesc& tensor) {
  const int last = tensor.dims.size() - 1;
  std::swap(tensor.dims[last], tensor.dims[last - 1]);
  std::swap(tensor.strides[last], tensor.strides[last - 1]);
}

void widen(TensorDesc& tensor, int rank) {
  while (tensor.dims.size() < rank) tensor = with_unit_axis(std::move(tensor), 0);
}

MatmulViews of_equal_rank(const Problem& problem, const TensorDesc& a, const TensorDesc& b,
                          std::vector<TensorDesc> operands) {
  MatmulViews v{a, b, problem.out[0], {}, std::move(operands)};
  const bool row_vector = v.a.dims.size() == 1, column_vector = v.b.dims.size() == 1;
  if (problem.in_ports() > 2) {
    v.bias.push_back(problem.in[2]);
    widen(v.bias[0], v.dst.dims.size());
  }
  if (!row_vector && problem.attrs.flag_or(Attr::transpose_a, false)) swap_last_axes(v.a);
  if (!column_vector && problem.attrs.flag_or(Attr::transpose_b, false)) swap_last_axes(v.b);
  const auto insert = [&](int from_end) {
    v.dst = with_unit_axis(v.dst, v.dst.dims.size() - from_end);
    for (auto* list : {&v.bias, &v.operands})
      for (TensorDesc& tensor : *list) tensor = with_unit_axis(tensor, tensor.dims.size() - from_end);
  };
  if (column_vector) {
    v.b = with_unit_axis(v.b, 1);
    insert(0);
  }
  if (row_vector) {
    v.a = with_unit_axis(v.a, 0);
    insert(1);
  }
  widen(v.a, v.dst.dims.size());
  widen(v.b, v.dst.dims.size());
  return v;
}

std::vector<TensorDesc*> tensors_of(MatmulViews& v) {
  std::vector<TensorDesc*> tensors = {&v.a, &v.b, &v.dst};
  for (auto* list : {&v.bias, &v.operands})
    for (TensorDesc& tensor : *list) tensors.push_back(&tensor);
  return tensors;
}

/// Batch axes in the order of the result's memory, whatever the user calls them: oneDNN 3.7 reads out of bounds where
/// they lie otherwise and an operand of a post-operation repeats along one.
void sort_batch_axes(MatmulViews& v) {
  Dims order;
  for (int axis = 0; axis < v.dst.dims.size(); ++axis) order.push_back(axis);
  const Dims strides = v.dst.strides;
  std::stable_sort(order.begin(), order.end() - 2,
                   [&](int64_t x, int64_t y) { return strides[static_cast<int>(x)] > strides[static_cast<int>(y)]; });
  for (TensorDesc* tensor : tensors_of(v)) {
    tensor->dims = permuted(tensor->dims, order);
    tensor->strides = permuted(tensor->strides, order);
  }
}

/// True where axes `at` and `at` + 1 of the tensor can be walked as one that has the sizes of `dst`.
bool is_mergeable(const TensorDesc& tensor, const TensorDesc& dst, int at) {
  if (tensor.dims[at] == 1 && tensor.dims[at + 1] == 1) return true;
  return tensor.dims[at] == dst.dims[at] && tensor.dims[at + 1] == dst.dims[at + 1] &&
         tensor.strides[at] == tensor.dims[at + 1] * tensor.strides[at + 1];
}

void merge(TensorDesc& tensor, int at) {
  tensor.dims[at + 1] *= tensor.dims[at];
  tensor.dims.erase(at);
  tensor.strides.erase(at);
}

bool merge_batch_axes(MatmulViews& v, int at) {
  const std::vector<TensorDesc*> tensors = tensors_of(v);
  for (const TensorDesc* tensor : tensors) {
    if (!is_mergeable(*tensor, v.dst, at)) return false;
  }
  for (TensorDesc* tensor : tensors) merge(*tensor, at);
  return true;
}

/// The last batch axis into the rows: b must have no batch there.
bool merge_into_rows(MatmulViews& v) {
  const int batch = v.dst.dims.size() - 3;
  if (v.b.dims[batch] != 1 || !is_mergeable(v.a, v.dst, batch) || !is_mergeable(v.dst, v.dst, batch)) return false;
  for (auto* list : {&v.bias, &v.operands})
    for (const TensorDesc& tensor : *list)
      if (!is_mergeable(tensor, v.dst, batch)) return false;
  for (TensorDesc* tensor : tensors_of(v))
    if (tensor != &v.b) merge(*tensor, batch);
  v.b.dims.erase(batch);
  v.b.strides.erase(batch);
  return true;
}

/// Strides of axes of size 1 as in a row-major matrix: merging may have left ones that oneDNN takes for an overlap.
void settle_unit_axes(TensorDesc& tensor) {
  const int row = tensor.dims.size() - 2, column = row + 1;
  if (tensor.dims[column] == 1) tensor.strides[column] = 1;
  if (tensor.dims[row] == 1) tensor.strides[row] = tensor.dims[column] * tensor.strides[column];
}

}  // namespace

MatmulViews matmul_views(const Problem& problem, const TensorDesc& a, const TensorDesc& b,
                         std::vector<TensorDesc> operands) {
  MatmulViews v = of_equal_rank(problem, a, b, std::move(operands));
  for (int axis = v.dst.dims.size() - 3; axis >= 0; --axis) {
    if (v.dst.dims[axis] != 1) continue;
    for (TensorDesc* tensor : tensors_of(v)) {
      tensor->dims.erase(axis);
      tensor->strides.erase(axis);
    }
  }
  sort_batch_axes(v);
  for (int axis = v.dst.dims.size() - 4; axis >= 0; --axis) merge_batch_axes(v, axis);
  while (v.dst.dims.size() > 2 && merge_into_rows(v)) continue;
  for (TensorDesc* tensor : tensors_of(v)) settle_unit_axes(*tensor);
  return v;
}

}  // namespace partita::onednn
