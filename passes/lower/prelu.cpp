// SPDX-License-Identifier: Apache-2.0
// Lowering of PReLU's gradients: one loop that stores the one and folds the other along the axes that the slope lacks.
#include "passes/lower/lowering.hpp"
#include "src/base/axes.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

TensorDesc over_source(const Lowering& l, const TensorDesc& slope, const Dims& space) {
  if (slope.dims.size() != 1) return spread(slope, space);
  const bool channels = l.op->attrs.flag_or(Attr::per_channel_broadcast, true) && space.size() > 1;
  return spread_along(slope, space, channels ? channel_axis(l.op->attrs, space.size()) : space.size() - 1);
}

bool repeats(const TensorDesc& desc) {
  for (int d = 0; d < desc.dims.size(); ++d)
    if (desc.dims[d] != 1 && desc.strides[d] == 0) return true;
  return false;
}

}  // namespace

Status lower_prelu_backward(Lowering& l) {
  const TensorDesc diff_src = l.output(0), diff_slope = l.output(1);
  const Dims& space = diff_src.dims;
  LoopStep loop;
  const auto x = loop.load(spread(l.input(0), space), l.input_buffer(0));
  const auto slope = loop.load(over_source(l, l.input(1), space), l.input_buffer(1));
  const auto g = loop.load(spread(l.input(2), space), l.input_buffer(2));
  ExprBuilder b = loop.builder();
  const auto zero = b.constant(0), positive = b.gt(x, zero);
  loop.store(diff_src, l.output_buffer(0), b.select(positive, g, b.mul(g, slope)));
  const auto share = b.select(positive, zero, b.mul(g, x));

  const TensorDesc each = over_source(l, diff_slope, space);
  if (!repeats(each)) {
    loop.store(each, l.output_buffer(1), share);
    l.add_step(loop.take());
    return {};
  }
  const bool finished = diff_slope.dtype == Dtype::f32 && is_dense(diff_slope.dims, diff_slope.strides);
  const int sums = finished ? l.output_buffer(1) : l.add_temporary(Dtype::f32, diff_slope.dims);
  loop.fold(Fold::sum, over_source(l, l.buffer_desc(sums), space), sums, share);
  l.add_step(loop.take());
  if (finished) return {};
  LoopStep convert;
  convert.store(diff_slope, l.output_buffer(1), convert.load(l.buffer_desc(sums), sums));
  l.add_step(convert.take());
  return {};
}

}  // namespace partita
