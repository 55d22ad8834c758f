// SPDX-License-Identifier: Apache-2.0
// Pooling forward and backward, plane by plane in f64. Divisors and empty windows: docs/numerics.md.
#include <cmath>
#include <limits>

#include "kernels/ref/references.hpp"
#include "kernels/ref/windows.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

/// Lowest finite value of a type: what a window without any valid tap gives.
double lowest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return -0x1.fep127;
    case Dtype::f16:
      return -65504;
    case Dtype::s8:
      return -128;
    case Dtype::u8:
      return 0;
    default:
      return std::numeric_limits<float>::lowest();
  }
}

/// What one pooling problem walks over: the planes of the side that is pooled, and of the pooled side.
struct Pool {
  WindowShape shape;
  Planes wide, narrow;
  int64_t windows() const { return narrow.size(); }
};

Pool pool_of(const Problem& problem, const View& wide, const View& narrow) {
  return {window_shape(problem.attrs, problem.attrs.dims(Attr::kernel)), Planes(wide, problem.attrs),
          Planes(narrow, problem.attrs)};
}

/// body(plane, scratch of the wide plane, scratch of the narrow plane), planes divided among threads.
template <class Body>
void for_each_plane(const Pool& pool, Body body) {
  const int64_t cost = pool.windows() * pool.shape.taps() * 4 + pool.wide.size();
  parallel_for(pool.narrow.count(), cost, [&](int64_t begin, int64_t end) {
    std::vector<double> wide(static_cast<size_t>(pool.wide.size())), narrow(static_cast<size_t>(pool.windows()));
    for (int64_t plane = begin; plane < end; ++plane) body(plane, wide, narrow);
  });
}

/// body(number of the window, its place), in row-major order.
template <class Body>
void for_each_window(const Pool& pool, Body body) {
  Dims place(pool.narrow.spatial().size(), 0);
  for (int64_t window = 0; window < pool.windows(); ++window) {
    body(static_cast<size_t>(window), place);
    advance(place, pool.narrow.spatial());
  }
}

/// Index of the first maximum among the valid taps, or of the first NaN; -1 where there is no valid tap.
int64_t first_maximum(const Pool& pool, const Dims& place, const std::vector<double>& source) {
  int64_t best = -1;
  for_each_valid_tap(pool.shape, place, pool.wide.spatial(), [&](int64_t index) {
    if (best < 0) {
      best = index;
      return;
    }
    const double value = source[static_cast<size_t>(index)], leader = source[static_cast<size_t>(best)];
    if (value > leader || (std::isnan(value) && !std::isnan(leader))) best = index;
  });
  return best;
}

/// What the sum of a window is divided by; 0 where the window is to be skipped.
double divisor(const Pool& pool, const Dims& place, bool exclude_pad) {
  int64_t valid = 0;
  for_each_valid_tap(pool.shape, place, pool.wide.spatial(), [&](int64_t) { ++valid; });
  return static_cast<double>(valid == 0 || exclude_pad ? valid : pool.shape.taps());
}

}  // namespace

Status max_pool(const Problem& problem, Args args) {
  const View dst = out_view(problem, args, 0);
  const Pool pool = pool_of(problem, in_view(problem, args, 0), dst);
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& source, std::vector<double>& result) {
    pool.wide.read(plane, source.data());
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const int64_t best = first_maximum(pool, place, source);
      result[window] = best < 0 ? lowest_of(dst.dtype()) : source[static_cast<size_t>(best)];
    });
    pool.narrow.write(plane, result.data());
  });
  return {};
}

Status max_pool_backward(const Problem& problem, Args args) {
  const Pool pool = pool_of(problem, in_view(problem, args, 0), in_view(problem, args, 1));
  const Planes diff_src(out_view(problem, args, 0), problem.attrs);
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& source, std::vector<double>& gradient) {
    pool.wide.read(plane, source.data());
    pool.narrow.read(plane, gradient.data());
    std::vector<double> sums(source.size(), 0);
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const int64_t best = first_maximum(pool, place, source);
      if (best >= 0) sums[static_cast<size_t>(best)] += gradient[window];
    });
    diff_src.write(plane, sums.data());
  });
  return {};
}

Status avg_pool(const Problem& problem, Args args) {
  const Pool pool = pool_of(problem, in_view(problem, args, 0), out_view(problem, args, 0));
  const bool exclude_pad = problem.attrs.flag(Attr::exclude_pad);
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& source, std::vector<double>& result) {
    pool.wide.read(plane, source.data());
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const double by = divisor(pool, place, exclude_pad);
      double sum = 0;
      for_each_valid_tap(pool.shape, place, pool.wide.spatial(),
                         [&](int64_t i) { sum += source[static_cast<size_t>(i)]; });
      result[window] = by == 0 ? 0 : sum / by;
    });
    pool.narrow.write(plane, result.data());
  });
  return {};
}

Status avg_pool_backward(const Problem& problem, Args args) {
  const Pool pool = pool_of(problem, out_view(problem, args, 0), in_view(problem, args, 0));
  const bool exclude_pad = problem.attrs.flag(Attr::exclude_pad);
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& sums, std::vector<double>& gradient) {
    pool.narrow.read(plane, gradient.data());
    std::fill(sums.begin(), sums.end(), 0.0);
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const double by = divisor(pool, place, exclude_pad);
      if (by == 0) return;
      for_each_valid_tap(pool.shape, place, pool.wide.spatial(),
                         [&](int64_t i) { sums[static_cast<size_t>(i)] += gradient[window] / by; });
    });
    pool.wide.write(plane, sums.data());
  });
  return {};
}

}  // namespace partita::ref
