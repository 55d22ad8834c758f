// SPDX-License-Identifier: Apache-2.0
// Windows and cells of one pooling axis.
#include "kernels/jit/pool/windows.hpp"

namespace partita::jit {

std::vector<Cover> covers_of(const PoolGeometry& g, int i, int64_t cell) {
  std::vector<Cover> covers;
  const int64_t padded = cell + g.pads_begin[i], reach = (g.kernel[i] - 1) * g.dilations[i];
  const int64_t first = padded > reach ? (padded - reach + g.strides[i] - 1) / g.strides[i] : 0;
  for (int64_t o = first; o < g.dst[i] && o * g.strides[i] <= padded; ++o) {
    const int64_t distance = padded - o * g.strides[i];
    if (distance % g.dilations[i] == 0) covers.push_back({o, distance / g.dilations[i]});
  }
  return covers;
}

float axis_weight(const PoolGeometry& g, int i, int64_t window) {
  const int64_t counted = g.counted(i, window);
  return counted == 0 ? 0 : 1.0f / static_cast<float>(counted);
}

std::vector<WindowStretch> window_stretches(const PoolGeometry& g, int i) {
  std::vector<WindowStretch> list;
  for (int64_t o = 0; o < g.dst[i]; ++o) {
    const PoolGeometry::Taps taps = g.taps(i, o);
    const int64_t counted = g.counted(i, o);
    if (!list.empty() && list.back().taps.begin == taps.begin && list.back().taps.end == taps.end &&
        list.back().counted == counted)
      ++list.back().count;
    else
      list.push_back({o, 1, taps, counted});
  }
  return list;
}

PoolGeometry with_three_axes(PoolGeometry g) {
  while (g.axes() < 3) {
    g.src.insert(0, 1);
    g.dst.insert(0, 1);
    g.kernel.insert(0, 1);
    g.strides.insert(0, 1);
    g.dilations.insert(0, 1);
    g.pads_begin.insert(0, 0);
    g.pads_end.insert(0, 0);
  }
  return g;
}

}  // namespace partita::jit
