// SPDX-License-Identifier: Apache-2.0
// Resampling problems, and what expressions behind them read.
#pragma once

#include <string>
#include <vector>

#include "tests/support/kernel_run.hpp"

namespace partita::test {

struct Resampled {
  int64_t batch = 1, channels = 1;
  std::vector<int64_t> small, large;  ///< source and result of the interpolation
  bool channel_last = false;
};

struct Manner {
  bool backward = false;
  std::string mode = "linear", coordinates = "half_pixel";
  Dtype dtype = Dtype::f32;
};

/// Dense tensors, which generated code takes.
Problem resampling(const Resampled& s, const Manner& how);

/// The generated row's results of max(result + operand, 0) and of the result itself against the reference; the operand
/// has an element for each place of some axes. Nothing where takes(problem) is false; returns whether it was not.
bool expect_operands_of_any_shape(const Problem& plain, Isa isa, Random& random, bool (*takes)(const Problem&, Isa));

/// A place that has fewer taps than its neighbours must not see their infinities: the generated rows against the
/// reference.
void expect_infinities_where_they_are_read(const Problem& p);

}  // namespace partita::test
