// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/resample/picked.hpp"

#include "kernels/jit/resample/walk.hpp"

namespace partita::jit {

bool PickedResample::fits(const Problem& p, Isa isa) {
  bool channel_last = false;
  if (refuse_resample_walk(p, channel_last) || channel_last || !p.front.empty()) return false;
  return PickedResults::fits(p, resample_walk(p, false), isa);
}

PickedResample::PickedResample(const Problem& p, const Target& target)
    : picks_(p, resample_walk(p, false), Fold::sum, target) {}

}  // namespace partita::jit
