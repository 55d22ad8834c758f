// SPDX-License-Identifier: Apache-2.0
// PReLU and its gradients; the slope repeats along the axes it does not have.
#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"

namespace partita::ref {
namespace {

/// A rank-1 slope lies along the channels (or the last axis where `per_channel_broadcast` is false); others follow
/// numpy.
View spread_slope(const View& slope, const Dims& dims, const Attrs& attrs) {
  if (slope.rank() != 1) return broadcast_to(slope, dims);
  const bool per_channel = attrs.flag_or(Attr::per_channel_broadcast, true);
  const int rank = dims.size();
  return along_axis(slope, dims, per_channel && rank > 1 ? channel_axis(rank, attrs) : rank - 1);
}

}  // namespace

Status prelu(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0);
  const View slope = spread_slope(in_view(problem, args, 1), src.dims, problem.attrs);
  map(
      3, [](double x, double s) { return x > 0 ? x : x * s; }, out_view(problem, args, 0), src, slope);
  return {};
}

Status prelu_backward(const Problem& problem, Args args) {
  const View src = in_view(problem, args, 0), diff_dst = in_view(problem, args, 2);
  const View slope = spread_slope(in_view(problem, args, 1), src.dims, problem.attrs);
  map(
      3, [](double x, double s, double dy) { return x > 0 ? dy : dy * s; }, out_view(problem, args, 0), src, slope,
      diff_dst);

  const View diff_slope = out_view(problem, args, 1);
  const View spread = spread_slope(diff_slope, src.dims, problem.attrs);
  std::vector<bool> repeated;
  for (int64_t stride : spread.strides) repeated.push_back(stride == 0);
  // A slope axis of length 1 has stride 0 too: nothing is lost, it is summed over one element.
  const Slices slices(src.dims, {src.strides, diff_dst.strides, spread.strides}, repeated, Order::memory);
  slices.each_in_parallel(3, [&](const Positions& base, int64_t) {
    double sum = 0;
    slices.inner.each(base, [&](const Positions& at, int64_t, int64_t n) {
      double x[kBlock], dy[kBlock];
      src.read(at[0], slices.inner.stride(0), n, x);
      diff_dst.read(at[1], slices.inner.stride(1), n, dy);
      for (int64_t i = 0; i < n; ++i) sum += x[i] > 0 ? 0 : dy[i] * x[i];
    });
    diff_slope.set(base[2], sum);
  });
  return {};
}

}  // namespace partita::ref
