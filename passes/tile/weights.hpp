// SPDX-License-Identifier: Apache-2.0
// Products with matrices that loops make of smaller ones (dequantized weights), in tiles of the matrix.
#pragma once

#include <optional>

#include "kernels/kernel.hpp"
#include "passes/tile/region.hpp"

namespace partita {

/// The loops that make a matrix for the product `program.steps[product]` alone, and it. Nothing where its matrices come
/// from elsewhere, are small or the same for every execution, or are multiplied with so many rows that making them
/// costs little.
std::optional<CutRegion> find_weights(const Program& program, size_t product, const Target& target);

}  // namespace partita
