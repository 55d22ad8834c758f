// SPDX-License-Identifier: Apache-2.0
// Code of a concatenation: vectors of a piece and, where it is no multiple of them, one that ends with it. What is
// shorter than a vector is moved as two parts of half the size or more, which may overlap.
//   rdi addresses of the sources' pieces that have no register; rsi the row of the result; rdx rows left; rcx bytes of
//   a long piece behind, or what is moved; rax a source without a register.
#include "kernels/jit/flat/concat_kernel.hpp"

#include <array>

namespace partita::jit {
namespace {

constexpr std::array kSources = {8, 9, 10, 11};  // registers that a caller does not expect back
constexpr int kUnrolled = 8;                     // vectors

bool has_register(size_t source) { return source < kSources.size(); }
Xbyak::Reg64 register_of(size_t source) { return Xbyak::Reg64(has_register(source) ? kSources[source] : 0); }

}  // namespace

ConcatKernel::ConcatKernel(Isa isa, const ConcatShape& shape)
    : Emitter(isa), streaming_(shape.streaming), fetching_(shape.fetching) {
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
    emit_piece(from, at, piece.bytes);
    has_register(k) ? advance(from, piece.src_row) : advance(place, piece.src_row);
    at += piece.bytes;
  }
  advance(rsi, shape.dst_row);
}

/// To bytes [at, at + bytes) of the row.
void ConcatKernel::emit_piece(const Xbyak::Reg64& from, int64_t at, int64_t bytes) {
  const int vector = vector_bytes(), pass = kUnrolled * vector;
  const int64_t passes = bytes / pass;
  const auto there = static_cast<int>(at);
  int64_t done = 0;
  if (passes > 2) {
    Xbyak::Label next;
    xor_(ecx, ecx);
    L(next);
    for (int v = 0; v < pass; v += vector) move(vector, from + rcx + v, rsi + rcx + (there + v));
    add(rcx, static_cast<uint32_t>(pass));
    cmp(rcx, static_cast<uint32_t>(passes * pass));
    jb(next, T_NEAR);
    done = passes * pass;
  }
  int part = vector;
  while (part > bytes) part /= 2;
  const auto move_part = [&](int64_t begin) {
    move(part, from + static_cast<int>(begin), rsi + (there + static_cast<int>(begin)));
  };
  for (; done + part <= bytes; done += part) move_part(done);
  if (done < bytes) move_part(bytes - part);
}

void ConcatKernel::move(int bytes, const Xbyak::RegExp& from, const Xbyak::RegExp& to) {
  if (bytes >= 16) fetch_line(from, fetching_);
  move_bytes(bytes, from, to, streaming_);
}

}  // namespace partita::jit
