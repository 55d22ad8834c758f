// SPDX-License-Identifier: Apache-2.0
// The taps of each axis tell whether sources are repeated.
#include "kernels/jit/resample/repeated.hpp"

#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/jit/resample/walk.hpp"
#include "kernels/pool_geometry.hpp"

namespace partita::jit {
namespace {

/// How often each source is repeated along the axis, all side by side; 0 where it is otherwise.
int64_t factor_of(const AxisMap& map) {
  if (map.from() == 0 || map.to() % map.from() != 0 || map.weighted()) return 0;
  const int64_t factor = map.to() / map.from();
  for (int64_t place = 0; place < map.to(); ++place)
    if (map.taps(place).size() != 1 || map.taps(place)[0].source != place / factor) return 0;
  return factor;
}

}  // namespace

std::optional<Problem> as_pool_backward(const Problem& resample, const Target& target) {
  bool channel_last = false;
  if (resample.op != OpKind::Interpolate || refuse_resample_walk(resample, channel_last)) return {};
  const PlaneWalk walk = resample_walk(resample, channel_last);
  const int axes = resample.out[0].dims.size() - 2;
  std::vector<int64_t> kernel;
  for (const AxisMap* map : {&walk.z, &walk.y, &walk.x}) {
    kernel.push_back(factor_of(*map));
    if (kernel.back() == 0) return {};
  }
  kernel.erase(kernel.begin(), kernel.end() - axes);
  Problem p = resample;
  p.step = StepKind::pool_backward;
  p.op = OpKind::AvgPoolBackward;
  p.ports_in = resample.in_ports();
  p.ports_out = resample.out_ports();
  p.attrs = {};
  p.attrs.set(Attr::data_format, resample.attrs.get(Attr::data_format));
  set_adjacent_windows(p.attrs, kernel);
  p.attrs.set(Attr::divisor_override, int64_t{1});
  if (refuse_pool_backward(p, target)) return {};
  return p;
}

}  // namespace partita::jit
