// SPDX-License-Identifier: Apache-2.0
// Lowering of poolings to what is simpler: adaptive averages with windows of one size are common ones; where one window
// covers everything, an average's gradient is repeated over its plane.
#include "kernels/pool_geometry.hpp"
#include "passes/lower/lowering.hpp"
#include "src/base/axes.hpp"

namespace partita {
namespace {

/// Adaptive windows of one size, one behind the other, are those of a common average pooling.
void make_common(Problem& p) {
  const bool backward = p.op == OpKind::AdaptiveAvgPoolBackward;
  const Dims &wide = (backward ? p.out : p.in)[0].dims, &narrow = (backward ? p.in : p.out)[0].dims;
  const PoolAxes axes{wide.size() - 2, true, channels_last(p.attrs)};
  std::vector<int64_t> kernel;
  for (int i = 0; i < axes.spatial; ++i) {
    const int64_t cells = wide[axes.spatial_axis(i)], windows = narrow[axes.spatial_axis(i)];
    if (windows == 0 || cells % windows != 0) return;
    kernel.push_back(cells / windows);
  }
  p.step = backward ? StepKind::pool_backward : StepKind::pool_forward;
  p.op = backward ? OpKind::AvgPoolBackward : OpKind::AvgPool;
  for (Attr attr : {Attr::sizes, Attr::spatial_axes}) p.attrs.set(attr, {});
  set_adjacent_windows(p.attrs, kernel);
}

}  // namespace

Status lower_average(Lowering& l) {
  Step whole = l.whole_op();
  if (whole.problem.step == StepKind::resample) make_common(whole.problem);
  if (whole.problem.step != StepKind::pool_backward) {
    l.add_step(std::move(whole));
    return {};
  }
  const TensorDesc diff_dst = whole.problem.in[0], diff_src = whole.problem.out[0];
  const PoolGeometry g = pool_geometry(whole.problem, diff_src.dims, diff_dst.dims);
  if (!l.generates_code() || !g.covers_all()) {
    l.add_step(std::move(whole));
    return {};
  }
  LoopStep loop;
  const auto gradient = loop.load(spread(diff_dst, diff_src.dims), l.input_buffer(0));
  const double divisor = g.divisor(Dims(g.axes(), 0));
  ExprBuilder b = loop.builder();
  const auto share = b.constant(divisor == 0 ? 0.0f : static_cast<float>(1 / divisor));
  loop.store(diff_src, l.output_buffer(0), b.mul(gradient, share));
  l.add_step(loop.take());
  return {};
}

}  // namespace partita
