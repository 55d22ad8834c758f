// SPDX-License-Identifier: Apache-2.0
// Interpolation, nearest and (bi-, tri-)linear, and its gradient, plane by plane in f64.
#include <algorithm>
#include <cmath>

#include "kernels/ref/planes.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

/// The two source places that a target place mixes along one axis.
struct Mix {
  int64_t low, high;
  double low_weight, high_weight;
};

/// In f32, like the primitives it is compared with: the rounding of ties decides which neighbour is nearest.
float source_coordinate(int64_t target, int64_t from, int64_t to, bool align_corners) {
  const float t = static_cast<float>(target), in = static_cast<float>(from), out = static_cast<float>(to);
  if (align_corners) return to > 1 ? t * (in - 1) / (out - 1) : 0.0f;
  return (t + 0.5f) * in / out - 0.5f;
}

Mix mix_of(int64_t target, int64_t from, int64_t to, const Attrs& attrs) {
  const float x = source_coordinate(target, from, to, attrs.is(Attr::coordinate_transformation_mode, "align_corners"));
  const auto clamped = [&](float place) { return std::clamp<int64_t>(static_cast<int64_t>(place), 0, from - 1); };
  if (attrs.is(Attr::mode, "nearest")) return {clamped(std::round(x)), 0, 1, 0};
  const int64_t low = clamped(std::floor(x));
  const double above = std::clamp(static_cast<double>(x) - static_cast<double>(low), 0.0, 1.0);
  return {low, clamped(std::ceil(x)), 1 - above, above};
}

/// The mixes of every axis and target place.
std::vector<std::vector<Mix>> mixes_of(const Dims& from, const Dims& to, const Attrs& attrs) {
  std::vector<std::vector<Mix>> mixes(static_cast<size_t>(from.size()));
  for (int axis = 0; axis < from.size(); ++axis) {
    for (int64_t t = 0; t < to[axis]; ++t)
      mixes[static_cast<size_t>(axis)].push_back(mix_of(t, from[axis], to[axis], attrs));
  }
  return mixes;
}

/// body(target number, source index, weight) for every pair with a weight.
template <class Body>
void for_each_pair(const Dims& from, const Dims& to, const std::vector<std::vector<Mix>>& mixes, Body body) {
  Dims place(to.size(), 0);
  const int corners = 1 << to.size();
  for (int64_t target = 0, n = elements(to); target < n; ++target) {
    for (int corner = 0; corner < corners; ++corner) {
      int64_t index = 0;
      double weight = 1;
      for (int axis = 0; axis < to.size(); ++axis) {
        const Mix& mix = mixes[static_cast<size_t>(axis)][static_cast<size_t>(place[axis])];
        const bool high = (corner >> axis & 1) != 0;
        weight *= high ? mix.high_weight : mix.low_weight;
        index = index * from[axis] + (high ? mix.high : mix.low);
      }
      if (weight != 0) body(static_cast<size_t>(target), static_cast<size_t>(index), weight);
    }
    advance(place, to);
  }
}

}  // namespace

Status interpolate(const Problem& problem, Args args) {
  const Planes src(in_view(problem, args, 0), problem.attrs), dst(out_view(problem, args, 0), problem.attrs);
  const auto mixes = mixes_of(src.spatial(), dst.spatial(), problem.attrs);
  parallel_for(dst.count(), dst.size() * 20, [&](int64_t begin, int64_t end) {
    std::vector<double> source(static_cast<size_t>(src.size())), result(static_cast<size_t>(dst.size()));
    for (int64_t plane = begin; plane < end; ++plane) {
      src.read(plane, source.data());
      std::fill(result.begin(), result.end(), 0.0);
      for_each_pair(src.spatial(), dst.spatial(), mixes,
                    [&](size_t target, size_t i, double weight) { result[target] += weight * source[i]; });
      dst.write(plane, result.data());
    }
  });
  return {};
}

Status interpolate_backward(const Problem& problem, Args args) {
  const Planes diff_dst(in_view(problem, args, 1), problem.attrs), diff_src(out_view(problem, args, 0), problem.attrs);
  const auto mixes = mixes_of(diff_src.spatial(), diff_dst.spatial(), problem.attrs);
  parallel_for(diff_dst.count(), diff_dst.size() * 20, [&](int64_t begin, int64_t end) {
    std::vector<double> gradient(static_cast<size_t>(diff_dst.size())), sums(static_cast<size_t>(diff_src.size()));
    for (int64_t plane = begin; plane < end; ++plane) {
      diff_dst.read(plane, gradient.data());
      std::fill(sums.begin(), sums.end(), 0.0);
      for_each_pair(diff_src.spatial(), diff_dst.spatial(), mixes,
                    [&](size_t target, size_t i, double weight) { sums[i] += weight * gradient[target]; });
      diff_src.write(plane, sums.data());
    }
  });
  return {};
}

}  // namespace partita::ref
