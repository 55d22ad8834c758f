// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and BiasAddBackward, which is one, in f64.
#include <cmath>
#include <limits>

#include "kernels/ref/references.hpp"
#include "kernels/ref/runs.hpp"
#include "kernels/ref/view.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita::ref {
namespace {

/// dst's strides on src's axes: 0 where an axis is reduced.
Dims strides_on_source(const View& dst, const std::vector<bool>& reduced) {
  const int rank = static_cast<int>(reduced.size());
  Dims strides(rank, 0);
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const bool gone = reduced[static_cast<size_t>(axis)];
    if (!gone) strides[axis] = dst.strides[dst.rank() == rank ? axis : next++];
  }
  return strides;
}

/// dst = finish(step(.. step(start, x0) .., xn)) for each slice over the reduced axes.
template <class Step, class Finish>
void fold(const View& src, const View& dst, const std::vector<bool>& reduced, double start, Step step, Finish finish) {
  const Slices slices(src.dims, {src.strides, strides_on_source(dst, reduced)}, reduced, Order::memory);
  slices.each_in_parallel(2, [&](const Positions& base, int64_t) {
    double total = start;
    slices.inner.each(base, [&](const Positions& at, int64_t, int64_t n) {
      double x[kBlock];
      src.read(at[0], slices.inner.stride(0), n, x);
      for (int64_t i = 0; i < n; ++i) total = step(total, x[i]);
    });
    dst.set(base[1], finish(total));
  });
}

template <class Step, class Finish>
Status reduce(const Problem& problem, Args args, double start, Step step, Finish finish) {
  const View src = in_view(problem, args, 0);
  std::vector<bool> reduced(static_cast<size_t>(src.rank()), false);
  for (int64_t given : problem.attrs.dims(Attr::axes)) {
    const auto axis = normal_axis(given, src.rank());
    if (!axis)
      return fail(Code::invalid_arguments,
                  str("`axes` must be in [-rank, rank) with rank ", src.rank(), ", found ", given));
    reduced[static_cast<size_t>(*axis)] = true;
  }
  fold(src, out_view(problem, args, 0), reduced, start, step, finish);
  return {};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kAsIs = [](double x) { return x; };
constexpr auto kSum = [](double total, double x) { return total + x; };

}  // namespace

Status reduce_l1(const Problem& problem, Args args) {
  return reduce(
      problem, args, 0, [](double total, double x) { return total + std::fabs(x); }, kAsIs);
}

Status reduce_l2(const Problem& problem, Args args) {
  return reduce(
      problem, args, 0, [](double total, double x) { return total + x * x; }, [](double x) { return std::sqrt(x); });
}

Status reduce_max(const Problem& problem, Args args) {
  return reduce(
      problem, args, -kInfinity, [](double best, double x) { return x > best || std::isnan(x) ? x : best; }, kAsIs);
}

Status reduce_min(const Problem& problem, Args args) {
  return reduce(
      problem, args, kInfinity, [](double best, double x) { return x < best || std::isnan(x) ? x : best; }, kAsIs);
}

Status reduce_sum(const Problem& problem, Args args) { return reduce(problem, args, 0, kSum, kAsIs); }

Status reduce_prod(const Problem& problem, Args args) {
  return reduce(
      problem, args, 1, [](double total, double x) { return total * x; }, kAsIs);
}

Status reduce_mean(const Problem& problem, Args args) {
  const Dims& src = problem.in[0].dims;
  double count = 1;
  for (int64_t given : problem.attrs.dims(Attr::axes)) {
    if (const auto axis = normal_axis(given, src.size())) count *= static_cast<double>(src[*axis]);
  }
  return reduce(problem, args, 0, kSum, [=](double total) { return total / count; });
}

Status bias_add_backward(const Problem& problem, Args args) {
  const View diff_dst = in_view(problem, args, 0);
  std::vector<bool> reduced(static_cast<size_t>(diff_dst.rank()), true);
  reduced[static_cast<size_t>(channel_axis(diff_dst.rank(), problem.attrs))] = false;
  fold(diff_dst, out_view(problem, args, 0), reduced, 0, kSum, kAsIs);
  return {};
}

}  // namespace partita::ref
