// SPDX-License-Identifier: Apache-2.0
// A walk over the channels of one place, some vectors at a time.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Emits group(vectors, elements of the last vector): a loop over groups of `together` vectors of `lanes`, then one of
/// what is left. rcx is the number of the first channel.
template <class Group>
void emit_channel_groups(Emitter& e, int64_t channels, int together, int lanes, const Group& group) {
  const int64_t each = int64_t{together} * lanes, groups = channels / each, rest = channels % each;
  e.xor_(e.ecx, e.ecx);
  if (groups > 0) {
    Xbyak::Label next;
    e.L(next);
    group(together, lanes);
    e.add(e.rcx, static_cast<uint32_t>(each));
    if (groups > 1) {
      e.cmp(e.rcx, static_cast<uint32_t>(groups * each));
      e.jl(next, Emitter::T_NEAR);
    }
  }
  if (rest > 0) group(static_cast<int>((rest + lanes - 1) / lanes), static_cast<int>((rest - 1) % lanes) + 1);
}

}  // namespace partita::jit
