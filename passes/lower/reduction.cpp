// SPDX-License-Identifier: Apache-2.0
// Lowering of reductions: a loop over the source that folds, then, where the fold is not yet the result, a small loop.
#include <cmath>

#include "passes/lower/lowering.hpp"
#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

using Value = ExprBuilder::Value;

std::vector<bool> reduced_axes(const Lowering& l, int rank) {
  if (l.op->kind == OpKind::BiasAddBackward) {
    std::vector<bool> reduced(static_cast<size_t>(rank), true);
    reduced[static_cast<size_t>(channel_axis(l.op->attrs, rank))] = false;
    return reduced;
  }
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int64_t axis : l.op->attrs.dims(Attr::axes)) reduced[static_cast<size_t>(*normal_axis(axis, rank))] = true;
  return reduced;
}

/// The result over the source's axes: repeated along the reduced ones.
TensorDesc over_source(const TensorDesc& dst, const Dims& space, const std::vector<bool>& reduced) {
  TensorDesc made{dst.dtype, space, Dims(space.size(), 0), dst.offset};
  const bool axes_stay = dst.dims.size() == space.size();
  int next = 0;
  for (int d = 0; d < space.size(); ++d)
    if (!reduced[static_cast<size_t>(d)]) made.strides[d] = dst.strides[axes_stay ? d : next++];
  return made;
}

Fold fold_for(OpKind kind) {
  switch (kind) {
    case OpKind::ReduceMax: return Fold::max;
    case OpKind::ReduceMin: return Fold::min;
    case OpKind::ReduceProd: return Fold::mul;
    default: return Fold::sum;
  }
}

int64_t elements_of_slice(const Dims& dims, const std::vector<bool>& reduced) {
  int64_t count = 1;
  for (int d = 0; d < dims.size(); ++d)
    if (reduced[static_cast<size_t>(d)]) count *= dims[d];
  return count;
}

/// What is folded of a source's element.
Value folded(ExprBuilder b, OpKind kind, Value x) {
  if (kind == OpKind::ReduceL1) return b.apply(ExprOp::abs, x);
  return kind == OpKind::ReduceL2 ? b.apply(ExprOp::square, x) : x;
}

/// The result, from what so many elements were folded into.
Value finished(ExprBuilder b, OpKind kind, Value sum, int64_t count) {
  if (kind == OpKind::ReduceL2) return b.apply(ExprOp::sqrt, sum);
  return kind == OpKind::ReduceMean && count != 1 ? b.div(sum, b.constant(static_cast<float>(count))) : sum;
}

}  // namespace

Status lower_reduction(Lowering& l) {
  const TensorDesc src = l.input(0), dst = l.output(0);
  const OpKind kind = l.op->kind;
  const std::vector<bool> reduced = reduced_axes(l, src.dims.size());
  const int64_t count = elements_of_slice(src.dims, reduced);

  LoopStep walk;
  const Value x = folded(walk.builder(), kind, walk.load(src, l.input_buffer(0)));
  if (count == 1) {
    walk.store(over_source(dst, src.dims, reduced), l.output_buffer(0), finished(walk.builder(), kind, x, count));
    l.add_step(walk.take());
    return {};
  }
  const bool at_once = kind != OpKind::ReduceL2 && kind != OpKind::ReduceMean && dst.dtype == Dtype::f32 &&
                       is_dense(dst.dims, dst.strides);
  const int sums = at_once ? l.output_buffer(0) : l.add_temporary(Dtype::f32, dst.dims);
  walk.fold(fold_for(kind), over_source(l.buffer_desc(sums), src.dims, reduced), sums, x);
  l.add_step(walk.take());
  if (at_once) return {};

  LoopStep finish;
  const Value sum = finish.load(l.buffer_desc(sums), sums);
  finish.store(dst, l.output_buffer(0), finished(finish.builder(), kind, sum, count));
  l.add_step(finish.take());
  return {};
}

}  // namespace partita
