// SPDX-License-Identifier: Apache-2.0
// Random numbers as lane operations: Philox4x32-10 with its four words in the four lanes of each quarter of 128 bits,
// so that elements whose numbers follow each other find theirs where they are, and a round takes five instructions.
#pragma once

#include "kernels/jit/code/lanes.hpp"
#include "kernels/problem.hpp"

namespace partita::jit {

/// A 64-bit integer, the same in all lanes.
struct Words {
  LaneBuilder::Value low, high;
};

/// Null where vectors of the operand's numbers can be made, otherwise the reason.
const char* refuse_numbers(const TensorDesc& numbers);
/// How far a number is from that of the next element of a row.
int64_t step_of(const TensorDesc& numbers);
/// dropout_words of the numbers that operand `operand` is, `numbers`, as f32 in [0, 1).
LaneBuilder::Value uniform_of(LaneBuilder& b, int operand, const TensorDesc& numbers, Words seed, Words offset);

}  // namespace partita::jit
