// SPDX-License-Identifier: Apache-2.0
// Poolings and their gradients written out as their definitions stand, for the tests of the doors. Numbers are in
// row-major order; no layout, no type, no code of the library's.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "partita/types.hpp"

namespace partita::test {

enum class DividesBy { valid, padded_box, kernel };

/// `source` and `pooled`: batch, channels, 1 to 3 spatial dims; lists: one entry a spatial axis.
struct NaivePooling {
  Dims source, pooled, kernel, strides, pads_begin, pads_end, dilations;
  DividesBy divides_by = DividesBy::valid;
  int64_t divisor_override = 0;

  int spatial() const { return kernel.size(); }
  int64_t planes() const { return source[0] * source[1]; }
  int64_t cells(const Dims& image) const {
    int64_t n = 1;
    for (int i = 0; i < spatial(); ++i) n *= image[i + 2];
    return n;
  }

  /// Calls visit(window, cell) for each tap inside the source in row-major order, counted within a plane.
  void for_each_tap(const std::function<void(int64_t window, int64_t cell)>& visit) const {
    for (int64_t w = 0; w < cells(pooled); ++w) {
      const Dims at = places(w, pooled);
      int64_t taps = 1;
      for (int64_t k : kernel) taps *= k;
      for (int64_t t = 0; t < taps; ++t) {
        int64_t rest = t, cell = 0, scale = 1;
        bool inside = true;
        for (int i = spatial() - 1; i >= 0; --i) {
          const int64_t x = at[i] * strides[i] - pads_begin[i] + rest % kernel[i] * dilations[i];
          rest /= kernel[i];
          inside = inside && x >= 0 && x < source[i + 2];
          cell += x * scale;
          scale *= source[i + 2];
        }
        if (inside) visit(w, cell);
      }
    }
  }

  /// What the average over a window divides by (dilations of 1).
  double divisor(int64_t window) const {
    if (divisor_override != 0) return static_cast<double>(divisor_override);
    const Dims at = places(window, pooled);
    double product = 1;
    for (int i = 0; i < spatial(); ++i) {
      const int64_t start = at[i] * strides[i] - pads_begin[i], size = source[i + 2];
      if (divides_by == DividesBy::kernel)
        product *= static_cast<double>(kernel[i]);
      else if (divides_by == DividesBy::padded_box)
        product *= static_cast<double>(std::min(start + kernel[i], size + pads_end[i]) - start);
      else
        product *= static_cast<double>(std::min(start + kernel[i], size) - std::max<int64_t>(start, 0));
    }
    return product;
  }

 private:
  Dims places(int64_t window, const Dims& image) const {
    Dims at(spatial(), 0);
    for (int i = spatial() - 1; i >= 0; --i) {
      at[i] = window % image[i + 2];
      window /= image[i + 2];
    }
    return at;
  }
};

/// Overlapping windows over three axes that differ in everything; the caller fills in `pooled`.
inline NaivePooling three_unequal_axes() {
  NaivePooling p;
  p.source = {1, 2, 4, 5, 7};
  p.kernel = {3, 2, 4};
  p.strides = {1, 2, 1};
  p.pads_begin = p.pads_end = {1, 0, 2};
  p.dilations = {1, 1, 1};
  p.divides_by = DividesBy::padded_box;
  return p;
}

using Reals = std::vector<double>;

/// fold(plane's cells, plane's windows) for each plane.
inline void for_each_plane(const NaivePooling& p, const std::function<void(int64_t cells_at, int64_t windows_at)>& f) {
  for (int64_t n = 0; n < p.planes(); ++n) f(n * p.cells(p.source), n * p.cells(p.pooled));
}

inline Reals naive_average(const NaivePooling& p, const Reals& source) {
  Reals result(static_cast<size_t>(p.planes() * p.cells(p.pooled)), 0.0);
  for_each_plane(p, [&](int64_t c0, int64_t w0) {
    p.for_each_tap([&](int64_t w, int64_t c) {
      result[static_cast<size_t>(w0 + w)] += source[static_cast<size_t>(c0 + c)] / p.divisor(w);
    });
  });
  return result;
}

inline Reals naive_average_gradient(const NaivePooling& p, const Reals& gradient) {
  Reals result(static_cast<size_t>(p.planes() * p.cells(p.source)), 0.0);
  for_each_plane(p, [&](int64_t c0, int64_t w0) {
    p.for_each_tap([&](int64_t w, int64_t c) {
      result[static_cast<size_t>(c0 + c)] += gradient[static_cast<size_t>(w0 + w)] / p.divisor(w);
    });
  });
  return result;
}

/// The first greatest cell of each window, within its plane; -1 for a window without cells.
inline std::vector<int64_t> naive_winners(const NaivePooling& p, const Reals& source) {
  std::vector<int64_t> winners(static_cast<size_t>(p.planes() * p.cells(p.pooled)), -1);
  for_each_plane(p, [&](int64_t c0, int64_t w0) {
    p.for_each_tap([&](int64_t w, int64_t c) {
      int64_t& best = winners[static_cast<size_t>(w0 + w)];
      if (best < 0 || source[static_cast<size_t>(c0 + c)] > source[static_cast<size_t>(c0 + best)]) best = c;
    });
  });
  return winners;
}

inline Reals naive_maximum(const NaivePooling& p, const Reals& source) {
  const std::vector<int64_t> winners = naive_winners(p, source);
  Reals result(winners.size());
  for_each_plane(p, [&](int64_t c0, int64_t w0) {
    for (int64_t w = 0; w < p.cells(p.pooled); ++w)
      result[static_cast<size_t>(w0 + w)] = source[static_cast<size_t>(c0 + winners[static_cast<size_t>(w0 + w)])];
  });
  return result;
}

/// `winners` within their planes.
inline Reals naive_scatter(const NaivePooling& p, const std::vector<int64_t>& winners, const Reals& gradient) {
  Reals result(static_cast<size_t>(p.planes() * p.cells(p.source)), 0.0);
  for_each_plane(p, [&](int64_t c0, int64_t w0) {
    for (int64_t w = 0; w < p.cells(p.pooled); ++w) {
      const int64_t cell = winners[static_cast<size_t>(w0 + w)];
      if (cell >= 0) result[static_cast<size_t>(c0 + cell)] += gradient[static_cast<size_t>(w0 + w)];
    }
  });
  return result;
}

/// Bins of two axes: bin i of O over I cells is [floor(i*I/O), ceil((i+1)*I/O)).
inline Reals naive_adaptive_gradient(const Dims& source, const Dims& pooled, const Reals& gradient) {
  const auto first = [](int64_t i, int64_t in, int64_t out) { return i * in / out; };
  const auto last = [](int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; };
  Reals result(static_cast<size_t>(source[0] * source[1] * source[2] * source[3]), 0.0);
  for (int64_t n = 0; n < source[0] * source[1]; ++n)
    for (int64_t y = 0; y < pooled[2]; ++y)
      for (int64_t x = 0; x < pooled[3]; ++x) {
        const int64_t y0 = first(y, source[2], pooled[2]), y1 = last(y, source[2], pooled[2]);
        const int64_t x0 = first(x, source[3], pooled[3]), x1 = last(x, source[3], pooled[3]);
        const double share = gradient[static_cast<size_t>((n * pooled[2] + y) * pooled[3] + x)] /
                             static_cast<double>((y1 - y0) * (x1 - x0));
        for (int64_t v = y0; v < y1; ++v)
          for (int64_t u = x0; u < x1; ++u) result[static_cast<size_t>((n * source[2] + v) * source[3] + u)] += share;
      }
  return result;
}

}  // namespace partita::test
