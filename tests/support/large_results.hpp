// SPDX-License-Identifier: Apache-2.0
// Kernels whose results are so large that they are stored past the caches.
#pragma once

#include <functional>

#include "tests/support/kernel_run.hpp"

namespace partita::test {

/// The least size of a result that goes past the caches; 0 where that is too large for a test.
int64_t large_bytes();

/// To a gradient of one input and one result: another gradient is added, and the sum is stored twice.
void add_and_store_twice(Problem& p);

/// Runs the generated row with results at the start of a cache line, which may go past the caches, and beside it, which
/// may not; both must be the same bits. Inputs are bits that are numbers between 2^-15 and 2^-7 in every type.
void expect_same_bits(Isa isa, const Problem& problem);

/// The same under each instruction set for what make(random, dtype, bytes) draws from seeds 1 to `seeds`: problems of
/// one of the float types with results of at least so many bytes. Skips the test where those are too large for one.
void expect_same_bits_of_seeds(uint64_t seeds, const std::function<Problem(Random&, Dtype, int64_t)>& make);

}  // namespace partita::test
