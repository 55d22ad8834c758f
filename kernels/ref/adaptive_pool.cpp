// SPDX-License-Identifier: Apache-2.0
// Adaptive average pooling and its gradient, plane by plane in f64.
#include <algorithm>

#include "kernels/pool_geometry.hpp"
#include "kernels/ref/planes.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

/// body(index of the source cell, number of cells of the window), for all cells of the window at `place`.
template <class Body>
void for_each_cell(const Dims& source, const Dims& windows, const Dims& place, Body body) {
  Dims begin, size;
  for (int i = 0; i < source.size(); ++i) {
    begin.push_back(place[i] * source[i] / windows[i]);
    size.push_back(((place[i] + 1) * source[i] + windows[i] - 1) / windows[i] - begin[i]);
  }
  const int64_t cells = elements(size);
  Dims at(source.size(), 0);
  for (int64_t left = cells; left > 0; --left) {
    int64_t index = 0;
    for (int i = 0; i < source.size(); ++i) index = index * source[i] + begin[i] + at[i];
    body(static_cast<size_t>(index), static_cast<double>(cells));
    advance(at, size);
  }
}

/// body(number of the window, index of the source cell, cells of the window)
template <class Body>
void for_each_pair(const Dims& source, const Dims& windows, Body body) {
  Dims place(windows.size(), 0);
  for (int64_t window = 0, n = elements(windows); window < n; ++window) {
    for_each_cell(source, windows, place,
                  [&](size_t cell, double cells) { body(static_cast<size_t>(window), cell, cells); });
    advance(place, windows);
  }
}

}  // namespace

Status adaptive_avg_pool(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
  const Planes src(in_view(problem, args, 0), problem.attrs), dst(out_view(problem, args, 0), problem.attrs);
  parallel_for(dst.count(), src.size() * 8, [&](int64_t begin, int64_t end) {
    std::vector<double> source(static_cast<size_t>(src.size())), result(static_cast<size_t>(dst.size()));
    for (int64_t plane = begin; plane < end; ++plane) {
      src.read(plane, source.data());
      std::fill(result.begin(), result.end(), 0.0);
      std::vector<double> counts(result.size(), 1);
      for_each_pair(src.spatial(), dst.spatial(), [&](size_t window, size_t cell, double cells) {
        result[window] += source[cell];
        counts[window] = cells;
      });
      for (size_t w = 0; w < result.size(); ++w) result[w] /= counts[w];
      dst.write(plane, result.data());
    }
  });
  return {};
}

Status adaptive_avg_pool_backward(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
  const Planes diff_dst(in_view(problem, args, 0), problem.attrs), diff_src(out_view(problem, args, 0), problem.attrs);
  parallel_for(diff_dst.count(), diff_src.size() * 8, [&](int64_t begin, int64_t end) {
    std::vector<double> gradient(static_cast<size_t>(diff_dst.size())), sums(static_cast<size_t>(diff_src.size()));
    for (int64_t plane = begin; plane < end; ++plane) {
      diff_dst.read(plane, gradient.data());
      std::fill(sums.begin(), sums.end(), 0.0);
      for_each_pair(diff_src.spatial(), diff_dst.spatial(),
                    [&](size_t window, size_t cell, double cells) { sums[cell] += gradient[window] / cells; });
      diff_src.write(plane, sums.data());
    }
  });
  return {};
}

}  // namespace partita::ref
