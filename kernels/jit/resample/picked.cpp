// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/resample/picked.hpp"

#include <optional>
#include <utility>

#include "kernels/jit/resample/walk.hpp"

namespace partita::jit {

namespace {

/// Nothing where the walk is channel-last with many channels, or with rows too long to be picked.
std::optional<PlaneWalk> picked_walk(const Problem& p) {
  bool channel_last = false;
  if (refuse_resample_walk(p, channel_last)) return {};
  PlaneWalk walk = resample_walk(p, channel_last);
  if (!channel_last) return walk;
  if (walk.channels > PickedResults::kFewChannels || walk.x.to() * walk.channels > PicksKernel::kMostResults) return {};
  return with_channels_in_rows(std::move(walk));
}

}  // namespace

bool PickedResample::fits(const Problem& p, Isa isa) {
  if (!p.front.empty()) return false;
  const std::optional<PlaneWalk> walk = picked_walk(p);
  return walk && PickedResults::fits(p, *walk, isa);
}

PickedResample::PickedResample(const Problem& p, const Target& target)
    : picks_(p, *picked_walk(p), Fold::sum, target) {}

}  // namespace partita::jit
