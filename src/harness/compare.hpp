// SPDX-License-Identifier: Apache-2.0
// Comparison of a tensor with its reference.
#pragma once

#include <string>

#include "passes/partition.hpp"
#include "src/harness/storage.hpp"

namespace partita {

struct Difference {
  double max_error = 0;  ///< largest |got - expected| / max(|expected|, root mean square of the expected values)
  int64_t wrong = 0;     ///< elements outside the tolerance; all of them where the reference is nowhere finite
  std::string first;     ///< where the first one is and what was found; empty where none is
};

/// What a partition's outputs may differ by (docs/numerics.md): set by the narrowest floating type inside it, or that
/// f32 mathematics may use (FpMath), wider where values are quantized between its operators. Integers and the smallest
/// numbers of f16 and f8 may differ by one step, booleans and s32 not at all.
double tolerance_of(const Partition& partition);

Difference compare(const Storage& got, const Storage& expected, double tolerance);

}  // namespace partita
