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

}  // namespace

Status lower_reduction(Lowering& l) {
  const TensorDesc src = l.input(0), dst = l.output(0);
  const OpKind kind = l.op->kind;
  const std::vector<bool> reduced = reduced_axes(l, src.dims.size());
  const bool finished = kind != OpKind::ReduceL2 && kind != OpKind::ReduceMean && dst.dtype == Dtype::f32 &&
                        is_dense(dst.dims, dst.strides);
  const int sums = finished ? l.output_buffer(0) : l.add_temporary(Dtype::f32, dst.dims);

  LoopStep walk;
  Value x = walk.load(src, l.input_buffer(0));
  ExprBuilder b = walk.builder();
  if (kind == OpKind::ReduceL1) x = b.apply(ExprOp::abs, x);
  if (kind == OpKind::ReduceL2) x = b.apply(ExprOp::square, x);
  walk.fold(fold_for(kind), over_source(l.buffer_desc(sums), src.dims, reduced), sums, x);
  l.add_step(walk.take());
  if (finished) return {};

  LoopStep finish;
  Value sum = finish.load(l.buffer_desc(sums), sums);
  ExprBuilder f = finish.builder();
  if (kind == OpKind::ReduceL2) sum = f.apply(ExprOp::sqrt, sum);
  if (kind == OpKind::ReduceMean) {
    double count = 1;
    for (int d = 0; d < src.dims.size(); ++d)
      if (reduced[static_cast<size_t>(d)]) count *= static_cast<double>(src.dims[d]);
    sum = f.div(sum, f.constant(static_cast<float>(count)));
  }
  finish.store(dst, l.output_buffer(0), sum);
  l.add_step(finish.take());
  return {};
}

}  // namespace partita
