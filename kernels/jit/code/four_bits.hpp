// SPDX-License-Identifier: Apache-2.0
// Operands of four bits have sixteen values, as many as a vector of AVX-512 has lanes: what is computed of one, and of
// what is the same for a whole row, is computed for all of them once a row, and then looked up.
#pragma once

#include <functional>

#include "kernels/jit/code/lanes.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {

/// The program with LaneOp::lookup for what depends on one load of s4 or u4 alone, in vectors of 16 lanes; as it is
/// where nothing does. Worth it in rows of a few vectors. Results are the same to the bit. `type_of(k)`: of operand k;
/// `repeats(k)`: it has one value for a whole row.
Lanes with_four_bits_looked_up(const Lanes& lanes, const std::function<Dtype(int operand)>& type_of,
                               const std::function<bool(int operand)>& repeats);

}  // namespace partita::jit
