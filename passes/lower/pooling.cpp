// SPDX-License-Identifier: Apache-2.0
// Lowering of poolings to what is simpler: adaptive averages with windows of one size are common ones; where one window
// covers everything, an average's gradient is repeated over its plane, and a maximum's place is found by two folds.
#include <numeric>

#include "kernels/pool_geometry.hpp"
#include "passes/lower/lowering.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

bool covers_all(const PoolGeometry& g) {
  for (int i = 0; i < g.axes(); ++i)
    if (g.dst[i] != 1 || g.dilations[i] != 1 || g.pads_begin[i] < 0 || g.kernel[i] - g.pads_begin[i] < g.src[i])
      return false;
  return true;
}

/// Adaptive windows of one size, one behind the other, are those of a common average pooling.
void make_common(Problem& p) {
  const bool backward = p.op == OpKind::AdaptiveAvgPoolBackward;
  const Dims &wide = (backward ? p.out : p.in)[0].dims, &narrow = (backward ? p.in : p.out)[0].dims;
  const PoolAxes axes{wide.size() - 2, true, p.attrs.is(Attr::data_format, "NXC")};
  std::vector<int64_t> kernel;
  for (int i = 0; i < axes.spatial; ++i) {
    const int64_t cells = wide[axes.spatial_axis(i)], windows = narrow[axes.spatial_axis(i)];
    if (windows == 0 || cells % windows != 0) return;
    kernel.push_back(cells / windows);
  }
  p.step = backward ? StepKind::pool_backward : StepKind::pool_forward;
  p.op = backward ? OpKind::AvgPoolBackward : OpKind::AvgPool;
  const std::vector<int64_t> none(kernel.size(), 0);
  for (Attr attr : {Attr::sizes, Attr::spatial_axes}) p.attrs.set(attr, {});
  for (Attr attr : {Attr::kernel, Attr::strides}) p.attrs.set(attr, kernel);
  for (Attr attr : {Attr::pads_begin, Attr::pads_end}) p.attrs.set(attr, none);
  p.attrs.set(Attr::exclude_pad, true);
}

constexpr int64_t kMostNumbered = int64_t{1} << 20;  ///< cells of a plane whose numbers lie in a table
constexpr int64_t kMostSpelledOut = 200;             ///< taps that generated code is quick with, channels as vectors

/// Channel-first there are as many windows in a row of memory as vectors have lanes only where a plane has many.
bool is_found_by_folds(const PoolGeometry& g) {
  const int64_t cells = elements(g.src);
  return covers_all(g) && cells <= kMostNumbered && (!g.channel_last || cells > kMostSpelledOut);
}

}  // namespace

/// The maximum m of a plane; the least number of a cell that is m (or NaN, which is a maximum); then the gradient
/// there.
Status lower_maximum_backward(Lowering& l) {
  Step whole = l.whole_op();
  const TensorDesc src = whole.problem.in[0], diff_dst = whole.problem.in[1], diff_src = whole.problem.out[0];
  const PoolGeometry g = pool_geometry(whole.problem, src.dims, diff_dst.dims);
  if (!l.generates_code() || !is_found_by_folds(g)) {
    l.add_step(std::move(whole));
    return {};
  }
  const int channel = g.channel_last ? src.dims.size() - 1 : 1;
  const Dims planes{g.batch, g.channels};
  TensorDesc numbers{Dtype::f32, src.dims, Dims(src.dims.size(), 0), 0}, plane = numbers;
  plane.strides[0] = g.channels;
  plane.strides[channel] = 1;
  int64_t cells = 1;
  for (int i = g.axes(); i-- > 0; cells *= g.src[i]) numbers.strides[g.tensor_axis(i)] = cells;
  std::vector<float> counted(static_cast<size_t>(cells));
  std::iota(counted.begin(), counted.end(), 0.0f);
  const int maximum = l.add_temporary(Dtype::f32, planes), place = l.add_temporary(Dtype::f32, planes);
  const int number = l.add_constant(counted);
  {
    LoopStep find;
    find.fold(Fold::max, plane, maximum, find.load(src, l.input_buffer(0)));
    l.add_step(find.take());
  }
  {
    LoopStep find;
    const auto x = find.load(src, l.input_buffer(0)), m = find.load(plane, maximum), n = find.load(numbers, number);
    ExprBuilder b = find.builder();
    const auto none = b.constant(static_cast<float>(kMostNumbered));
    const auto is_number = b.apply(ExprOp::eq, x, x), is_maximum = b.apply(ExprOp::eq, x, m);
    find.fold(Fold::min, plane, place, b.select(is_number, b.select(is_maximum, n, none), n));
    l.add_step(find.take());
  }
  LoopStep put;
  const auto n = put.load(numbers, number), p = put.load(plane, place);
  const auto gradient = put.load(spread(diff_dst, diff_src.dims), l.input_buffer(1));
  ExprBuilder b = put.builder();
  put.store(diff_src, l.output_buffer(0), b.select(b.apply(ExprOp::eq, n, p), gradient, b.constant(0)));
  l.add_step(put.take());
  return {};
}

Status lower_average(Lowering& l) {
  Step whole = l.whole_op();
  if (whole.problem.step == StepKind::resample) make_common(whole.problem);
  if (whole.problem.step != StepKind::pool_backward) {
    l.add_step(std::move(whole));
    return {};
  }
  const TensorDesc diff_dst = whole.problem.in[0], diff_src = whole.problem.out[0];
  const PoolGeometry g = pool_geometry(whole.problem, diff_src.dims, diff_dst.dims);
  if (!l.generates_code() || !covers_all(g)) {
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
