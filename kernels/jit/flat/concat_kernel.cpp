// SPDX-License-Identifier: Apache-2.0
// Code of a concatenation.
//   rdi addresses of the sources' pieces that have no register; rsi the row of the result; rdx rows left; rcx is used by
//   copies; rax a source without a register.
#include "kernels/jit/flat/concat_kernel.hpp"

#include <array>

#include "kernels/jit/flat/run_copy.hpp"

namespace partita::jit {
namespace {

constexpr std::array kSources = {8, 9, 10, 11};  // registers that a caller does not expect back

bool has_register(size_t source) { return source < kSources.size(); }
Xbyak::Reg64 register_of(size_t source) { return Xbyak::Reg64(has_register(source) ? kSources[source] : 0); }

}  // namespace

ConcatKernel::ConcatKernel(Isa isa, const ConcatShape& shape) : Emitter(isa) {
  for (size_t k = 0; k < shape.pieces.size() && has_register(k); ++k)
    mov(register_of(k), qword[rdi + 8 * static_cast<int>(k)]);
  Xbyak::Label row;
  align(16);
  L(row);
  emit_row(shape);
  dec(rdx);
  jnz(row, T_NEAR);
  vzeroupper();
  ret();
  entry_ = reinterpret_cast<void (*)(const void**, void*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
}

void ConcatKernel::emit_row(const ConcatShape& shape) {
  int64_t at = 0;
  for (size_t k = 0; k < shape.pieces.size(); ++k) {
    const ConcatShape::Piece& piece = shape.pieces[k];
    const Xbyak::Address place = qword[rdi + 8 * static_cast<int>(k)];
    const Xbyak::Reg64 from = register_of(k);
    if (!has_register(k)) mov(from, place);
    emit_run_copy(*this, from, rsi, at, {piece.bytes, shape.streaming, shape.fetching});
    has_register(k) ? advance(from, piece.src_row) : advance(place, piece.src_row);
    at += piece.bytes;
  }
  advance(rsi, shape.dst_row);
}

}  // namespace partita::jit
