// SPDX-License-Identifier: Apache-2.0
// Samples of indices.
#include "kernels/jit/pool/indices/reach.hpp"

#include <algorithm>
#include <limits>

#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostSamples = 512;
constexpr int64_t kWindowsOfASample = 64;  ///< at least, so that the samples cost next to nothing

int64_t floored(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

}  // namespace

IndexReach::Windows IndexReach::over(int i, int64_t windows, int64_t cell) const {
  const auto axis = static_cast<size_t>(i);
  const int64_t first = std::max<int64_t>(0, floored(cell - high[axis] + step[axis] - 1, step[axis]));
  const int64_t last = std::min(windows - 1, floored(cell - low[axis], step[axis]));
  return {first, std::max<int64_t>(0, last - first + 1)};
}

std::optional<IndexReach> sampled_reach(const PoolGeometry& g, const PoolIndex& base, const PoolView& view,
                                        const void* address) {
  IndexReach reach;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t src = g.src[static_cast<int>(i)], dst = g.dst[static_cast<int>(i)];
    reach.step[i] = std::max<int64_t>(1, (src + dst / 2) / dst);
    reach.low[i] = std::numeric_limits<int64_t>::max();
    reach.high[i] = std::numeric_limits<int64_t>::min();
  }
  const Dims space = {g.batch, g.channels, g.dst[0], g.dst[1], g.dst[2]};
  const int64_t all = elements(space), cells = elements(g.src);
  const int64_t samples = std::clamp<int64_t>(all / kWindowsOfASample, 1, kMostSamples);
  // A step without a factor in common with the extents, so that samples fall on all coordinates of every axis.
  const int64_t step = std::max<int64_t>(1, all / samples) | 1;
  for (int64_t k = 0, at = all / 2; k < samples; ++k, at = (at + step) % all) {
    const Dims place = coordinates(at, space);
    const std::byte* from = view.at(address, place[0], place[1], place[2], place[3], place[4]);
    const int64_t index = view.dtype == Dtype::s64 ? *reinterpret_cast<const int64_t*>(from)
                                                   : int64_t{*reinterpret_cast<const int32_t*>(from)};
    const auto distance = static_cast<uint64_t>(index) - static_cast<uint64_t>(base.first(place[0], place[1]));
    const uint64_t cell = distance / static_cast<uint64_t>(base.cell);
    if (cell >= static_cast<uint64_t>(cells)) return std::nullopt;
    auto rest = static_cast<int64_t>(cell);
    for (size_t i = 3; i-- > 0;) {
      const int64_t extent = g.src[static_cast<int>(i)];
      const int64_t here = rest % extent - place[static_cast<int>(i) + 2] * reach.step[i];
      rest /= extent;
      reach.low[i] = std::min(reach.low[i], here);
      reach.high[i] = std::max(reach.high[i], here);
    }
  }
  return reach;
}

}  // namespace partita::jit
