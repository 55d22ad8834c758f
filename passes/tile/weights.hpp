// SPDX-License-Identifier: Apache-2.0
// Products with matrices that loops make of smaller ones (dequantized weights), in tiles of the matrix.
#pragma once

#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "passes/tile/region.hpp"

namespace partita {

/// Loops that make a matrix for one product, with that product, and the extents of its tiles.
struct WeightsRegion {
  Region region;
  std::vector<int64_t> extents;
};

/// For the product `program.steps[product]`. Nothing where its matrices come from elsewhere, are small or the same for
/// every execution, or are multiplied with so many rows that making them costs little.
std::optional<WeightsRegion> find_weights(const Program& program, size_t product, const Target& target);

}  // namespace partita
