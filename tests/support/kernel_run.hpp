// SPDX-License-Identifier: Apache-2.0
// One kernel row on one problem, on guarded memory.
#pragma once

#include <string>
#include <vector>

#include "tests/support/random_problem.hpp"

namespace partita::test {

/// The instruction sets that this machine and build generate code for.
std::vector<Isa> generated_isas();
inline bool generates_code() { return !generated_isas().empty(); }
/// Whether it does for AVX-512, on this machine.
inline bool has_avx512() { return machine_isa() >= Isa::avx512 && generates_code(); }
/// The generated row of the step's table for the instruction set; fails the test where there is none.
const Kernel* generated_row(StepKind step, Isa isa);

/// Outputs start as NaN bytes, scratch memory too.
std::vector<Buffer> run_kernel(const Kernel& row, const Problem& problem, const std::vector<Buffer>& in, int threads);
/// The same for a whole target; its instruction set counts, not the row's.
std::vector<Buffer> run_kernel(const Kernel& row, const Problem& problem, const std::vector<Buffer>& in,
                               const Target& target);
/// What the operator's reference computes.
std::vector<Buffer> reference_results(const Problem& problem, const std::vector<Buffer>& in);
/// Empty where both hold the same bytes.
std::string byte_difference(const std::vector<Buffer>& got, const std::vector<Buffer>& expected);

}  // namespace partita::test
