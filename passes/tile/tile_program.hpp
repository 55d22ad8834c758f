// SPDX-License-Identifier: Apache-2.0
// The program of one tile, and the step that runs it for all of them.
#pragma once

#include "passes/tile/region.hpp"

namespace partita {

/// The step that computes the region tile by tile; `extents` of the tile axes. Errors: what kernel selection answers.
Result<Step> tile_step(const Program& program, const Region& region, const std::vector<int64_t>& extents,
                       const Target& target);

}  // namespace partita
