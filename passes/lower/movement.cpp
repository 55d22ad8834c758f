// SPDX-License-Identifier: Apache-2.0
// Lowering of StaticTranspose, StaticReshape and Concat to copying loops over views.
#include "passes/lower/lowering.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

void copy(Lowering& l, const TensorDesc& from, int from_buffer, const TensorDesc& to, int to_buffer) {
  LoopStep loop;
  loop.store(to, to_buffer, loop.load(from, from_buffer, false));
  l.add_step(loop.take());
}

void transpose(Lowering& l) {
  const TensorDesc src = l.input(0);
  Dims order = l.op->attrs.dims(Attr::order);
  const int rank = src.dims.size();
  if (order.empty())
    for (int d = rank - 1; d >= 0; --d) order.push_back(d);
  for (int64_t& axis : order)
    if (axis < 0) axis += rank;
  copy(l, {src.dtype, permuted(src.dims, order), permuted(src.strides, order), 0}, l.input_buffer(0), l.output(0),
       l.output_buffer(0));
}

/// `desc` (dense) with other dims of the same number of elements.
TensorDesc reshaped(const TensorDesc& desc, const Dims& dims) {
  return {desc.dtype, dims, dense_strides(dims), desc.offset};
}

void reshape(Lowering& l) {
  const TensorDesc src = l.input(0), dst = l.output(0);
  if (is_dense(src.dims, src.strides))
    return copy(l, reshaped(src, dst.dims), l.input_buffer(0), dst, l.output_buffer(0));
  if (is_dense(dst.dims, dst.strides))
    return copy(l, src, l.input_buffer(0), reshaped(dst, src.dims), l.output_buffer(0));
  const int packed = l.add_temporary(src.dtype, src.dims);
  const TensorDesc packed_desc{src.dtype, src.dims, dense_strides(src.dims), 0};
  copy(l, src, l.input_buffer(0), packed_desc, packed);
  copy(l, reshaped(packed_desc, dst.dims), packed, dst, l.output_buffer(0));
}

void concat(Lowering& l) {
  const TensorDesc dst = l.output(0);
  const int axis = *normal_axis(l.op->attrs.i64(Attr::axis), dst.dims.size());
  int64_t start = 0;
  for (int i = 0; i < l.inputs(); ++i) {
    const TensorDesc src = l.input(i);
    const TensorDesc part{dst.dtype, src.dims, dst.strides, dst.offset + start * dst.strides[axis]};
    if (elements(src.dims) > 0) copy(l, src, l.input_buffer(i), part, l.output_buffer(0));
    start += src.dims[axis];
  }
}

}  // namespace

Status lower_movement(Lowering& l) {
  if (l.op->kind == OpKind::StaticTranspose)
    transpose(l);
  else if (l.op->kind == OpKind::StaticReshape)
    reshape(l);
  else
    concat(l);
  return {};
}

}  // namespace partita
