// SPDX-License-Identifier: Apache-2.0
// Where periods lie, and what exists of them.
#include "kernels/jit/pool/backward/period_rows.hpp"

#include <algorithm>
#include <tuple>

namespace partita::jit {

bool has_periods(const PoolPlan& p) {
  constexpr int64_t kMostTaps = 36;
  const PoolGeometry& g = p.g;
  return g.kernel[0] == 1 && g.strides[0] == 1 && g.pads_begin[0] == 0 && g.src[0] == g.dst[0] &&
         g.kernel[1] * g.kernel[2] <= kMostTaps;
}

int64_t periods_of(const PoolPlan& p, int axis) {
  return (p.g.src[axis] + p.g.pads_begin[axis] + p.g.strides[axis] - 1) / p.g.strides[axis];
}

PeriodPart period_part(const PoolPlan& p, int axis, int64_t period) {
  const PoolGeometry& g = p.g;
  const auto taps = [&](int64_t window) {
    const auto valid = g.taps(axis, window);
    return valid.begin < valid.end ? std::pair{valid.begin, valid.end} : std::pair{int64_t{0}, int64_t{0}};
  };
  const auto exists = [&](int64_t window) {
    return window >= 0 && window < g.dst[axis] && taps(window) != std::pair{int64_t{0}, int64_t{0}};
  };
  PeriodPart part;
  if (exists(period)) std::tie(part.first_tap, part.end_tap) = taps(period);
  const int64_t start = period * g.strides[axis] - g.pads_begin[axis];
  part.first_cell = std::clamp<int64_t>(-start, 0, g.strides[axis]);
  part.end_cell = std::clamp<int64_t>(g.src[axis] - start, part.first_cell, g.strides[axis]);
  while (part.first_back < p.reach(axis) && !exists(period - part.first_back)) ++part.first_back;
  part.end_back = part.first_back;
  while (part.end_back < p.reach(axis) && exists(period - part.end_back)) ++part.end_back;
  return part;
}

bool has_channel_last_periods(const PoolPlan& p) {
  constexpr int64_t kMostCells = 16, kLeastChannels = 8;
  const PoolGeometry& g = p.g;
  return has_periods(p) && p.channel_last && g.channels >= kLeastChannels && g.strides[1] * g.strides[2] <= kMostCells;
}

size_t period_streams(const PoolPlan& p) {
  return p.front_in.size() + static_cast<size_t>(p.g.strides[1]) * (p.back_in.size() + p.out.size());
}

size_t place_period(const PoolPlan& p, const RunArgs& args, int64_t plane, int64_t period, const void** to) {
  const PoolGeometry& g = p.g;
  const int64_t n = plane / g.src[0], z = plane % g.src[0], first = period * g.strides[1] - g.pads_begin[1];
  const auto row_of = [&](int64_t row) { return std::clamp<int64_t>(first + row, 0, g.src[1] - 1); };
  size_t count = 0;
  const auto add_in = [&](int k, int64_t y) {
    const auto o = static_cast<size_t>(k);
    to[count++] = p.in[o].at(args.in[o], n, 0, z, y, 0);
  };
  for (int k : p.front_in) add_in(k, std::min(period, g.dst[1] - 1));
  for (int64_t row = 0; row < g.strides[1]; ++row)
    for (int k : p.back_in) add_in(k, row_of(row));
  for (int64_t row = 0; row < g.strides[1]; ++row)
    for (size_t o = 0; o < p.out.size(); ++o) to[count++] = p.out[o].at(args.out[o], n, 0, z, row_of(row), 0);
  return count;
}

}  // namespace partita::jit
