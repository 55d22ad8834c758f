// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/pool/forward/picked.hpp"

#include <optional>
#include <utility>

#include "kernels/jit/pool/view.hpp"

namespace partita::jit {
namespace {

/// Whether all windows count the same along axis `i`.
bool counts_alike(const PoolGeometry& g, int i) {
  for (int64_t o = 1; o < g.dst[i]; ++o)
    if (g.counted(i, o) != g.counted(i, 0)) return false;
  return true;
}

/// Nothing where a window has no cell. `divisor` is another one of all windows.
std::optional<AxisMap> axis_map(const PoolGeometry& g, int i, double divisor) {
  std::vector<int32_t> begin = {0};
  std::vector<Tap> taps;
  const bool alike = g.maximum || counts_alike(g, i);
  for (int64_t o = 0; o < g.dst[i]; ++o) {
    const PoolGeometry::Taps valid = g.taps(i, o);
    if (valid.begin == valid.end) return {};
    const auto weight = static_cast<float>(1 / (alike ? divisor : divisor * static_cast<double>(g.counted(i, o))));
    for (int64_t tap = valid.begin; tap < valid.end; ++tap)
      taps.push_back({static_cast<int32_t>(g.cell(i, o, tap)), weight});
    begin.push_back(static_cast<int32_t>(taps.size()));
  }
  return AxisMap(g.src[i], std::move(begin), std::move(taps));
}

/// What each result takes of the source, with the shares of an average; nothing where one takes nothing.
std::optional<PlaneWalk> picked_walk(const Problem& problem) {
  const PoolGeometry g = forward_pool(problem).g;
  int64_t counted = 1;  // along axes where all windows count the same
  for (int i = 0; i < 3; ++i)
    if (counts_alike(g, i)) counted *= g.counted(i, 0);
  const double divisor = g.maximum ? 1 : g.divisor_of(counted);
  const std::optional<AxisMap> z = axis_map(g, 0, divisor), y = axis_map(g, 1, 1), x = axis_map(g, 2, 1);
  if (!z || !y || !x) return {};
  const bool no_y = problem.out[0].dims.size() == 3;  // the channels take its place
  return PlaneWalk{
      .outer = g.batch, .inner = no_y ? 1 : g.channels, .z = *z, .y = no_y ? identity_map(g.channels) : *y, .x = *x};
}

Fold fold_of(const Problem& problem) { return problem.op == OpKind::MaxPool ? Fold::max : Fold::sum; }

}  // namespace

bool PickedPool::fits(const Problem& problem, Isa isa) {
  const ForwardPool p = forward_pool(problem);
  if (p.g.channel_last || p.divides || !problem.front.empty()) return false;
  const std::optional<PlaneWalk> walk = picked_walk(problem);
  return walk && PickedResults::fits(problem, *walk, isa);
}

PickedPool::PickedPool(const Problem& problem, const Target& target)
    : picks_(problem, *picked_walk(problem), fold_of(problem), target) {}

}  // namespace partita::jit
