// SPDX-License-Identifier: Apache-2.0
// A function's frame on the stack.
#pragma once

#include <initializer_list>
#include <iterator>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Emits code() as a function that may use the `saved` registers, and memory of `bytes` bytes from rsp on, which is
/// aligned to 64.
template <class Code>
void emit_in_frame(Emitter& e, std::initializer_list<Xbyak::Reg64> saved, int bytes, const Code& code) {
  e.push(e.rbp);
  e.mov(e.rbp, e.rsp);
  for (const Xbyak::Reg64& reg : saved) e.push(reg);
  e.sub(e.rsp, bytes);
  e.and_(e.rsp, -64);
  code();
  e.vzeroupper();
  e.lea(e.rsp, e.ptr[e.rbp - 8 * static_cast<int>(saved.size())]);
  for (auto reg = std::make_reverse_iterator(saved.end()); reg != std::make_reverse_iterator(saved.begin()); ++reg)
    e.pop(*reg);
  e.pop(e.rbp);
  e.ret();
}

}  // namespace partita::jit
