// SPDX-License-Identifier: Apache-2.0
// Coordinates of an interpolation and their regular stretches.
#include "kernels/jit/resample/axes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace partita::jit {
namespace {

bool aligns_corners(const Attrs& attrs) { return attrs.is(Attr::coordinate_transformation_mode, "align_corners"); }

/// In f32: its rounding of ties decides which neighbour is nearest.
float source_coordinate(int64_t place, int64_t from, int64_t to, bool align_corners) {
  const float p = static_cast<float>(place), in = static_cast<float>(from), out = static_cast<float>(to);
  if (align_corners) return to > 1 ? p * (in - 1) / (out - 1) : 0.0f;
  return (p + 0.5f) * in / out - 0.5f;
}

/// True where `next` is what `map` shall have `rows` steps after the stretch's first result.
bool continues(const TapStretch& s, std::span<const Tap> next, int64_t rows, int64_t shift,
               std::span<const int32_t> position) {
  if (next.size() != s.positions.size()) return false;
  for (size_t k = 0; k < next.size(); ++k)
    if (position[static_cast<size_t>(next[k].source)] != s.positions[k] + rows * shift) return false;
  return true;
}

std::vector<float> weights_of(const AxisMap& map, const TapStretch& s, int64_t step) {
  std::vector<float> weights;
  for (size_t k = 0; k < s.positions.size(); ++k)
    for (int64_t i = 0; i < s.count; ++i) weights.push_back(map.taps(s.first + i * step)[k].weight);
  return weights;
}

}  // namespace

AxisMap interpolation_map(int64_t from, int64_t to, const Attrs& attrs) {
  const bool align = aligns_corners(attrs), nearest = attrs.is(Attr::mode, "nearest");
  const auto clamped = [&](float place) {
    return static_cast<int32_t>(std::clamp<int64_t>(static_cast<int64_t>(place), 0, from - 1));
  };
  std::vector<int32_t> begin = {0};
  std::vector<Tap> taps;
  begin.reserve(static_cast<size_t>(to) + 1);
  taps.reserve(static_cast<size_t>(to) * (nearest ? 1 : 2));
  for (int64_t place = 0; place < to; ++place) {
    const float x = source_coordinate(place, from, to, align);
    if (nearest) {
      taps.push_back({clamped(std::round(x)), 1});
    } else {
      const int32_t low = clamped(std::floor(x)), high = clamped(std::ceil(x));
      const double above = std::clamp(static_cast<double>(x) - static_cast<double>(low), 0.0, 1.0);
      if (low == high) {
        taps.push_back({low, 1});
      } else {
        if (above < 1) taps.push_back({low, static_cast<float>(1 - above)});
        if (above > 0) taps.push_back({high, static_cast<float>(above)});
      }
    }
    begin.push_back(static_cast<int32_t>(taps.size()));
  }
  return {from, std::move(begin), std::move(taps)};
}

AxisMap adaptive_map(int64_t from, int64_t to) {
  std::vector<int32_t> begin = {0};
  std::vector<Tap> taps;
  for (int64_t place = 0; place < to; ++place) {
    const int64_t first = place * from / to, end = ((place + 1) * from + to - 1) / to;
    for (int64_t source = first; source < end; ++source)
      taps.push_back({static_cast<int32_t>(source), 1.0f / static_cast<float>(end - first)});
    begin.push_back(static_cast<int32_t>(taps.size()));
  }
  return {from, std::move(begin), std::move(taps)};
}

AxisStep regular_step(const AxisMap& map, const Attrs& attrs, std::span<const int32_t> position) {
  const int64_t gap = aligns_corners(attrs) ? 1 : 0, from = map.from() - gap, to = map.to() - gap;
  const int64_t step = std::max<int64_t>(1, to / std::max<int64_t>(1, std::gcd(from, to)));
  // Away from the borders, where taps are missing.
  const int64_t middle = std::max<int64_t>(0, (map.to() - step) / 2);
  for (int64_t place = middle; place + step < map.to(); ++place) {
    const auto here = map.taps(place), there = map.taps(place + step);
    if (!here.empty() && !there.empty())
      return {step, position[static_cast<size_t>(there[0].source)] - position[static_cast<size_t>(here[0].source)]};
  }
  return {step, 0};
}

std::vector<TapStretch> tap_stretches(const AxisMap& map, int64_t begin, int64_t end, const AxisStep& step,
                                      std::span<const int32_t> position) {
  std::vector<TapStretch> list;
  for (int64_t phase = begin; phase < std::min(begin + step.step, end); ++phase) {
    const size_t own = list.size();
    for (int64_t place = phase; place < end; place += step.step) {
      const auto taps = map.taps(place);
      if (list.size() > own && continues(list.back(), taps, list.back().count, step.shift, position)) {
        ++list.back().count;
        continue;
      }
      list.push_back({place, 1, {}, {}});
      for (const Tap& t : taps) list.back().positions.push_back(position[static_cast<size_t>(t.source)]);
    }
  }
  for (TapStretch& s : list) s.weights = weights_of(map, s, step.step);
  return list;
}

AxisStep stretch_step(const AxisMap& map, const Attrs& attrs, std::span<const int32_t> position) {
  const AxisStep regular = regular_step(map, attrs, position), repeated{1, 0};
  const auto stretches = [&](const AxisStep& step) { return tap_stretches(map, 0, map.to(), step, position).size(); };
  return stretches(repeated) < stretches(regular) ? repeated : regular;
}

std::vector<int32_t> used_before(const AxisMap& map) {
  std::vector<int32_t> count(static_cast<size_t>(map.from()) + 1, 0);
  for (int64_t place = 0; place < map.to(); ++place)
    for (const Tap& t : map.taps(place)) count[static_cast<size_t>(t.source) + 1] = 1;
  std::partial_sum(count.begin(), count.end(), count.begin());
  return count;
}

}  // namespace partita::jit
