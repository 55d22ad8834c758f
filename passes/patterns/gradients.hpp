// SPDX-License-Identifier: Apache-2.0
// Gradients of matrix products, as parts of patterns.
#pragma once

#include "passes/pattern.hpp"

namespace partita::patterns {

/// The product that sums over rows or columns (kSummedRows, kSummedColumns) of the value here, which may be reshaped on
/// the way; where it is transposed, the product sums over the others.
Pat product_over(int summed);

}  // namespace partita::patterns
