// SPDX-License-Identifier: Apache-2.0
// Comparison of a tensor with its reference.
#pragma once

#include <span>
#include <string>

#include "passes/partition.hpp"
#include "src/harness/storage.hpp"

namespace partita {

struct Difference {
  /// Largest |got - expected| / max(|expected|, root mean square of the expected values); where other results are
  /// given, of what lies outside the range that they span.
  double max_error = 0;
  int64_t wrong = 0;  ///< elements outside the tolerance; all of them where the reference is nowhere finite
  std::string first;  ///< where the first one is and what was found; empty where none is
};

/// What each value of a partition may be off by (docs/numerics.md): set by the narrowest floating type that one is
/// rounded to, or that f32 mathematics may use (FpMath).
double value_tolerance_of(const Partition& partition);

/// Whether operators that quantize have company.
bool is_quantized_inside(const Partition& partition);

/// The same for outputs, wider where values are quantized between operators. Integers and the smallest numbers of f16
/// and f8 may differ by one step, booleans and s32 not at all.
double tolerance_of(const Partition& partition);

/// `others` are results that small errors on the way lead to, of the same layout as `expected`. An element may also lie
/// in the range that they and `expected` span, or as far outside of it as it is wide: few results do not reach all that
/// is possible.
Difference compare(const Storage& got, const Storage& expected, double tolerance,
                   std::span<const Storage* const> others = {});

}  // namespace partita
