// SPDX-License-Identifier: Apache-2.0
// Numbers that instructions hold.
#pragma once

#include <cstdint>

#include "kernels/jit/code/xbyak.hpp"

namespace partita::jit {

/// `n` as a displacement or an operand of an instruction, or as an entry of a table that code reads: 32 bits with a
/// sign. Throws Xbyak::Error where it has more, upon which everything is compiled without machine code: planners refuse
/// in time what tensors can ask for.
inline int imm32(int64_t n) {
  if (n != static_cast<int32_t>(n)) throw Xbyak::Error(Xbyak::ERR_OFFSET_IS_TOO_BIG);
  return static_cast<int>(n);
}

}  // namespace partita::jit
