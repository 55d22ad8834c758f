// SPDX-License-Identifier: Apache-2.0
// Pooling forward and backward, plane by plane in f64. Divisors and empty windows: docs/numerics.md.
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/pool_geometry.hpp"
#include "kernels/ref/references.hpp"
#include "kernels/ref/windows.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

/// Lowest finite value of a type: what a window without any valid tap gives.
double lowest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return -0x1.fep127;
    case Dtype::f16: return -65504;
    case Dtype::s8: return -128;
    case Dtype::u8: return 0;
    default: return std::numeric_limits<float>::lowest();
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

/// What the sum of a window is divided by; 0 where the window is to be skipped. Cells are counted one by one.
double divisor(const Pool& pool, const Dims& place, const Attrs& attrs) {
  int64_t valid = 0, inside_padding = 0;
  for_each_valid_tap(pool.shape, place, pool.wide.spatial(), [&](int64_t) { ++valid; });
  if (valid == 0) return 0;
  if (const int64_t given = attrs.i64_or(Attr::divisor_override, 0); given != 0) return static_cast<double>(given);
  if (attrs.flag(Attr::exclude_pad)) return static_cast<double>(valid);
  if (!attrs.flag_or(Attr::exclude_overhang, false)) return static_cast<double>(pool.shape.taps());
  WindowShape from_padding = pool.shape;
  Dims padded = pool.wide.spatial();
  const Dims pads_end = attrs.dims(Attr::pads_end);
  for (int i = 0; i < padded.size(); ++i) {
    padded[i] += pool.shape.pads[i] + (pads_end.empty() ? 0 : pads_end[i]);
    from_padding.pads[i] = 0;
  }
  for_each_valid_tap(from_padding, place, padded, [&](int64_t) { ++inside_padding; });
  return static_cast<double>(inside_padding);
}

/// What indices of a plane start with, and the distance of cells.
struct PlaneIndex {
  int64_t first, step;
};

PlaneIndex plane_index(const Attrs& attrs, const View& wide, int64_t plane, int64_t cells) {
  if (!attrs.is(Attr::index_base, "tensor")) return {0, 1};
  const bool channel_last = !attrs.is(Attr::data_format, "NCX");
  const int64_t channels = wide.dims[channel_last ? wide.rank() - 1 : 1];
  if (channel_last) return {plane / channels * cells * channels + plane % channels, channels};
  return {plane * cells, 1};
}

}  // namespace

Status max_pool(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
  const View src = in_view(problem, args, 0), dst = out_view(problem, args, 0);
  const Pool pool = pool_of(problem, src, dst);
  const bool wants_indices = has_indices(problem);
  const Planes indices(wants_indices ? out_view(problem, args, 1) : dst, problem.attrs);
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& source, std::vector<double>& result) {
    pool.wide.read(plane, source.data());
    const PlaneIndex index = plane_index(problem.attrs, src, plane, pool.wide.size());
    std::vector<double> winners(result.size());
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const int64_t best = first_maximum(pool, place, source);
      result[window] = best < 0 ? lowest_of(dst.dtype()) : source[static_cast<size_t>(best)];
      winners[window] = best < 0 ? -1 : static_cast<double>(index.first + best * index.step);
    });
    pool.narrow.write(plane, result.data());
    if (wants_indices) indices.write(plane, winners.data());
  });
  return {};
}

Status max_pool_indices_backward(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
  const View wide = out_view(problem, args, 0);
  const Planes diff_dst(in_view(problem, args, 0), problem.attrs), indices(in_view(problem, args, 1), problem.attrs);
  const Planes diff_src(wide, problem.attrs);
  const auto windows = static_cast<size_t>(diff_dst.size());
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> bad_window = kNone;  // the first one, so that the message does not depend on the threads
  parallel_for(diff_dst.count(), diff_src.size() + diff_dst.size() * 2, [&](int64_t begin, int64_t end) {
    std::vector<double> gradient(windows), index(windows), sums(static_cast<size_t>(diff_src.size()));
    for (int64_t plane = begin; plane < end; ++plane) {
      diff_dst.read(plane, gradient.data());
      indices.read(plane, index.data());
      std::fill(sums.begin(), sums.end(), 0.0);
      const PlaneIndex base = plane_index(problem.attrs, wide, plane, diff_src.size());
      for (size_t w = 0; w < windows; ++w) {
        if (index[w] == -1) continue;
        const int64_t distance = static_cast<int64_t>(index[w]) - base.first, cell = distance / base.step;
        if (distance < 0 || distance % base.step != 0 || cell >= diff_src.size()) {
          int64_t first = bad_window, here = plane * static_cast<int64_t>(windows) + static_cast<int64_t>(w);
          while (here < first && !bad_window.compare_exchange_weak(first, here)) {
          }
          break;
        }
        sums[static_cast<size_t>(cell)] += gradient[w];
      }
      diff_src.write(plane, sums.data());
    }
  });
  if (bad_window == kNone) return {};
  const int64_t plane = bad_window / diff_dst.size(), window = bad_window % diff_dst.size();
  std::vector<double> index(windows);
  indices.read(plane, index.data());
  return bad_pool_index(problem.attrs, pool_geometry(problem, problem.out[0].dims, problem.in[0].dims), plane, window,
                        static_cast<int64_t>(index[static_cast<size_t>(window)]));
}

Status max_pool_backward(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
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

Status avg_pool(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
  const Pool pool = pool_of(problem, in_view(problem, args, 0), out_view(problem, args, 0));
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& source, std::vector<double>& result) {
    pool.wide.read(plane, source.data());
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const double by = divisor(pool, place, problem.attrs);
      double sum = 0;
      for_each_valid_tap(pool.shape, place, pool.wide.spatial(),
                         [&](int64_t i) { sum += source[static_cast<size_t>(i)]; });
      result[window] = by == 0 ? 0 : sum / by;
    });
    pool.narrow.write(plane, result.data());
  });
  return {};
}

Status avg_pool_backward(const Problem& given, Args args) {
  const Problem problem = with_batch_axis(given);
  const Pool pool = pool_of(problem, out_view(problem, args, 0), in_view(problem, args, 0));
  for_each_plane(pool, [&](int64_t plane, std::vector<double>& sums, std::vector<double>& gradient) {
    pool.narrow.read(plane, gradient.data());
    std::fill(sums.begin(), sums.end(), 0.0);
    for_each_window(pool, [&](size_t window, const Dims& place) {
      const double by = divisor(pool, place, problem.attrs);
      if (by == 0) return;
      for_each_valid_tap(pool.shape, place, pool.wide.spatial(),
                         [&](int64_t i) { sums[static_cast<size_t>(i)] += gradient[window] / by; });
    });
    pool.wide.write(plane, sums.data());
  });
  return {};
}

}  // namespace partita::ref
