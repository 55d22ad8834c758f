// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/pool/picked.hpp"

#include <array>
#include <optional>
#include <utility>

#include "kernels/jit/pool/plan.hpp"
#include "kernels/jit/pool/view.hpp"
#include "kernels/loop/fold_plan.hpp"

namespace partita::jit {
namespace {

/// Whether all windows count the same along axis `i`.
bool counts_alike(const PoolGeometry& g, int i) {
  for (int64_t o = 1; o < g.dst[i]; ++o)
    if (g.counted(i, o) != g.counted(i, 0)) return false;
  return true;
}

/// Shares are 1 / `divisor`, unless all windows count `alike` divided by what they count, too. Nothing where a window
/// has no cell.
std::optional<AxisMap> axis_map(const PoolGeometry& g, int i, bool alike, double divisor) {
  std::vector<int32_t> begin = {0};
  std::vector<Tap> taps;
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

bool is_gradient(const Problem& problem) { return problem.op == OpKind::AvgPoolBackward; }

/// What each result takes of the source, with the shares of an average: along z divided by what all windows count alike
/// along any axis. A gradient's cell takes of each window over it the share that this takes of the cell. Nothing where
/// a window takes nothing.
std::optional<PlaneWalk> picked_walk(const Problem& problem, const PoolGeometry& g) {
  std::array<bool, 3> alike = {};
  int64_t counted = 1;
  for (int i = 0; i < 3; ++i) {
    alike[static_cast<size_t>(i)] = g.maximum || counts_alike(g, i);
    if (alike[static_cast<size_t>(i)]) counted *= g.counted(i, 0);
  }
  const double divisor = g.maximum ? 1 : g.divisor_of(counted);
  auto z = axis_map(g, 0, alike[0], divisor), y = axis_map(g, 1, alike[1], 1), x = axis_map(g, 2, alike[2], 1);
  if (!z || !y || !x) return {};
  if (is_gradient(problem))
    for (auto* map : {&z, &y, &x}) *map = (*map)->transposed();
  if (g.channel_last)
    return with_channels_in_rows(
        {.channel_last = true, .outer = g.batch, .channels = g.channels, .z = *z, .y = *y, .x = *x});
  PlaneWalk walk{.outer = g.batch, .inner = g.channels, .z = *z, .y = *y, .x = *x};
  if (problem.out[0].dims.size() == 3) {  // the channels take the place of y
    walk.inner = 1;
    walk.y = identity_map(g.channels);
  }
  return walk;
}

}  // namespace

bool PickedPool::fits(const Problem& problem, Isa isa) {
  if (problem.step != StepKind::pool_forward && !is_gradient(problem)) return false;
  const PoolGeometry g = pool_plan_geometry(problem, {});
  if (!problem.front.empty() || (g.channel_last && g.channels > PickedResults::kFewChannels)) return false;
  if (is_gradient(problem)) {
    if (has_folds(problem)) return false;
  } else if (forward_pool(problem).divides) {
    return false;
  }
  const std::optional<PlaneWalk> walk = picked_walk(problem, g);
  return walk && PickedResults::fits(problem, *walk, isa);
}

PickedPool::PickedPool(const Problem& problem, const Target& target)
    : picks_(problem, *picked_walk(problem, pool_plan_geometry(problem, {})),
             problem.op == OpKind::MaxPool ? Fold::max : Fold::sum, target) {}

}  // namespace partita::jit
