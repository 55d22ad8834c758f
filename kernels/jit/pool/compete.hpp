// SPDX-License-Identifier: Apache-2.0
// A step of a search for maxima in which NaN counts as one.
#pragma once

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/code/predicates.hpp"

namespace partita::jit {

/// In each lane the value takes the place of the best, and its number that of the winner, where it is greater, or NaN
/// and the best is not. AVX-512 uses k1, AVX2 the two further registers.
inline void emit_compete(Emitter& e, const Xbyak::Xmm& best, const Xbyak::Xmm& winner, const Xbyak::Xmm& value,
                         const Xbyak::Operand& number, const Xbyak::Xmm& wins, const Xbyak::Xmm& ordered) {
  if (e.wide()) {
    const Xbyak::Opmask greater = Xbyak::util::k1, taken = greater;
    e.vcmpps(greater, best, value, kNotGreaterEqual);
    e.vcmpps(taken | greater, best, best, kOrdered);
    e.vmovaps(best | taken, value);
    return e.vmovdqa32(winner | taken, number);
  }
  e.vcmpps(wins, best, value, kNotGreaterEqual);
  e.vcmpps(ordered, best, best, kOrdered);
  e.vandps(wins, wins, ordered);
  e.vblendvps(best, best, value, wins);
  e.vblendvps(winner, winner, number, wins);
}

}  // namespace partita::jit
