// SPDX-License-Identifier: Apache-2.0
// The taps of each axis tell whether sources are repeated, or means are taken.
#include "kernels/jit/resample/as_pooling.hpp"

#include <span>
#include <vector>

#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/jit/pool/forward/forward.hpp"
#include "kernels/jit/resample/walk.hpp"
#include "kernels/pool_geometry.hpp"

namespace partita::jit {
namespace {

/// How often each source is repeated along the axis, all side by side; 0 where it is otherwise.
int64_t repeats_of(const AxisMap& map) {
  if (map.from() == 0 || map.to() % map.from() != 0 || map.weighted()) return 0;
  const int64_t factor = map.to() / map.from();
  for (int64_t place = 0; place < map.to(); ++place)
    if (map.taps(place).size() != 1 || map.taps(place)[0].source != place / factor) return 0;
  return factor;
}

/// Of how many sources, side by side and its own, each place is the mean along the axis; 0 where it is otherwise.
int64_t means_of(const AxisMap& map) {
  if (map.to() == 0 || map.from() % map.to() != 0) return 0;
  const int64_t count = map.from() / map.to();
  for (int64_t place = 0; place < map.to(); ++place) {
    const std::span<const Tap> taps = map.taps(place);
    if (std::ssize(taps) != count) return 0;
    for (int64_t t = 0; t < count; ++t)
      if (taps[static_cast<size_t>(t)].source != place * count + t ||
          taps[static_cast<size_t>(t)].weight * static_cast<float>(count) != 1)
        return 0;
  }
  return count;
}

/// Extents of windows, of each of the problem's axes; nothing where `extent_of` is 0 of one.
template <class F>
std::optional<std::vector<int64_t>> windows_of(const PlaneWalk& walk, int axes, const F& extent_of) {
  std::vector<int64_t> kernel;
  for (const AxisMap* map : {&walk.z, &walk.y, &walk.x}) {
    kernel.push_back(extent_of(*map));
    if (kernel.back() == 0) return {};
  }
  kernel.erase(kernel.begin(), kernel.end() - axes);
  return kernel;
}

/// Windows of these extents, one behind the other.
Problem pooling(const Problem& resample, StepKind step, OpKind op, const std::vector<int64_t>& kernel) {
  Problem p = resample;
  p.step = step;
  p.op = op;
  p.ports_in = resample.in_ports();
  p.ports_out = resample.out_ports();
  p.attrs = {};
  p.attrs.set(Attr::data_format, resample.attrs.get(Attr::data_format));
  set_adjacent_windows(p.attrs, kernel);
  return p;
}

}  // namespace

std::optional<Problem> as_pooling(const Problem& resample, const Target& target) {
  bool channel_last = false;
  if (resample.op != OpKind::Interpolate || refuse_resample_walk(resample, channel_last)) return {};
  const PlaneWalk walk = resample_walk(resample, channel_last);
  const int axes = resample.out[0].dims.size() - 2;
  if (const auto repeats = windows_of(walk, axes, repeats_of)) {
    Problem p = pooling(resample, StepKind::pool_backward, OpKind::AvgPoolBackward, *repeats);
    p.attrs.set(Attr::divisor_override, int64_t{1});
    if (refuse_pool_backward(p, target) == nullptr) return p;
  }
  if (const auto means = windows_of(walk, axes, means_of)) {
    Problem p = pooling(resample, StepKind::pool_forward, OpKind::AvgPool, *means);
    if (refuse_pool_forward(p, target) == nullptr) return p;
  }
  return {};
}

}  // namespace partita::jit
