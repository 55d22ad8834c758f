// SPDX-License-Identifier: Apache-2.0
// Lowering of average pooling backward: where one window covers everything, each gradient is repeated over its plane.
#include "kernels/pool_geometry.hpp"
#include "passes/lower/lowering.hpp"

namespace partita {
namespace {

bool covers_all(const PoolGeometry& g) {
  for (int i = 0; i < g.axes(); ++i)
    if (g.dst[i] != 1 || g.dilations[i] != 1 || g.pads_begin[i] < 0 || g.kernel[i] - g.pads_begin[i] < g.src[i])
      return false;
  return true;
}

}  // namespace

Status lower_average_backward(Lowering& l) {
  const TensorDesc diff_dst = l.input(0), diff_src = l.output(0);
  Step whole = l.whole_op();
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
