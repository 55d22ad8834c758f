// SPDX-License-Identifier: Apache-2.0
// Pooling over dense planes: windows are walked in row-major order, taps inside a window too.
#include "kernels/loop/pool_planes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/base/shape.hpp"

namespace partita {
namespace {

/// Steps `at` through the box `dims` in row-major order; false at the end.
bool advance(Dims& at, const Dims& dims) {
  for (int d = dims.size() - 1; d >= 0; --d) {
    if (++at[d] < dims[d]) return true;
    at[d] = 0;
  }
  return false;
}

/// Calls f(window number, o) for every window.
template <class F>
void each_window(const PoolGeometry& g, F f) {
  Dims o(g.axes(), 0);
  int64_t number = 0;
  if (elements(g.dst) == 0) return;
  do f(number++, o);
  while (advance(o, g.dst));
}

/// Calls f(source position) for every valid cell of window o.
template <class F>
void each_cell(const PoolGeometry& g, const Dims& o, F f) {
  Dims begin(g.axes(), 0), count(g.axes(), 0), at(g.axes(), 0);
  for (int i = 0; i < g.axes(); ++i) {
    const auto t = g.taps(i, o[i]);
    if (t.begin == t.end) return;
    begin[i] = t.begin;
    count[i] = t.end - t.begin;
  }
  do {
    int64_t position = 0;
    for (int i = 0; i < g.axes(); ++i)
      position = position * g.src[i] + o[i] * g.strides[i] - g.pads_begin[i] + (begin[i] + at[i]) * g.dilations[i];
    f(position);
  } while (advance(at, count));
}

bool beats(float candidate, float best) { return candidate > best || (std::isnan(candidate) && !std::isnan(best)); }

}  // namespace

void pool_forward_plane(const PoolGeometry& g, int64_t lanes, const float* src, float* dst, float empty) {
  each_window(g, [&](int64_t number, const Dims& o) {
    float* to = dst + number * lanes;
    bool first = true;
    std::fill(to, to + lanes, g.maximum ? empty : 0.0f);
    each_cell(g, o, [&](int64_t position) {
      const float* from = src + position * lanes;
      for (int64_t l = 0; l < lanes; ++l)
        if (!g.maximum)
          to[l] += from[l];
        else if (first || beats(from[l], to[l]))
          to[l] = from[l];
      first = false;
    });
    if (g.maximum || first) return;
    const auto divisor = static_cast<float>(g.divisor(o));
    for (int64_t l = 0; l < lanes; ++l) to[l] /= divisor;
  });
}

void average_backward_plane(const PoolGeometry& g, int64_t lanes, const float* diff_dst, float* diff_src) {
  std::fill(diff_src, diff_src + elements(g.src) * lanes, 0.0f);
  each_window(g, [&](int64_t number, const Dims& o) {
    const float* from = diff_dst + number * lanes;
    const double divisor = g.divisor(o);
    if (divisor == 0) return;
    each_cell(g, o, [&](int64_t position) {
      float* to = diff_src + position * lanes;
      for (int64_t l = 0; l < lanes; ++l) to[l] += from[l] / static_cast<float>(divisor);
    });
  });
}

void max_backward_plane(const PoolGeometry& g, int64_t lanes, const float* src, const float* diff_dst,
                        float* diff_src) {
  std::fill(diff_src, diff_src + elements(g.src) * lanes, 0.0f);
  std::array<int64_t, kMaxLanes> best{};
  each_window(g, [&](int64_t number, const Dims& o) {
    bool first = true;
    each_cell(g, o, [&](int64_t position) {
      for (int64_t l = 0; l < lanes; ++l) {
        int64_t& winner = best[static_cast<size_t>(l)];
        if (first || beats(src[position * lanes + l], src[winner * lanes + l])) winner = position;
      }
      first = false;
    });
    if (first) return;
    for (int64_t l = 0; l < lanes; ++l)
      diff_src[best[static_cast<size_t>(l)] * lanes + l] += diff_dst[number * lanes + l];
  });
}

}  // namespace partita
