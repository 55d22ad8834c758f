// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima, and what is tested of every kernel for them.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {

struct WindowSizes {
  int64_t batch, channels;
  std::vector<int64_t> spatial, kernel, strides, dilations, pads;
};

/// All tensors dense.
Problem maximum_gradient(Dtype dtype, const WindowSizes& sizes, bool channel_last);
/// Now and then with ties, infinities and NaN in the source; gradients are small whole numbers, so that sums are exact.
std::vector<Buffer> maximum_inputs(const Problem& problem, Random& random);
/// The same bytes as the reference's.
void expect_reference_bytes(const Problem& problem, Random& random, const Target& target);
/// A second operand before and behind, and an additional result; `plain` is f32.
void expect_expressions_around(const Problem& plain, Random& random, const Target& target);
/// Selects behind the gradient that have zero in its place unless the source, or another operand, is positive; now and
/// then with a second result.
void expect_choices_behind(const Problem& plain, Random& random, const Target& target);
void expect_threads_change_no_byte(const Problem& problem, Random& random, Isa isa);

}  // namespace partita::test
