// SPDX-License-Identifier: Apache-2.0
// Tiling: how large the tiles of a region are.
#pragma once

#include <optional>
#include <vector>

#include "passes/tile/region.hpp"

namespace partita {

/// Extents of the tile axes: each divides its axis but for the last one's, whose last tile may be smaller. Nothing
/// where the region is better run step by step.
std::optional<std::vector<int64_t>> tiling_of(const Program& program, const Region& region);
/// The same for a region around sums, whose tiles are read from memory once: what they read and make stays in the share
/// of the last-level cache that a processor has.
std::optional<std::vector<int64_t>> tiling_of_sums(const Program& program, const Region& region);

}  // namespace partita
