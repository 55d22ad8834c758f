// SPDX-License-Identifier: Apache-2.0
// Code of the indices: rdi call, rsi and rdx rows, r8 rows left, r9 first, r10 steps, rcx element. Vector 0: the first
// index; 1: what a place counts; 2: indices.
#include "kernels/jit/pool/indices/index_store.hpp"

#include <algorithm>

namespace partita::jit {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

IndexStoreKernel::IndexStoreKernel(Isa isa, const IndexStoreShape& shape) : Emitter(isa), shape_(shape) {
  const bool s64 = shape.dtype == Dtype::s64;
  const int64_t whole = shape.length / lanes() * lanes();
  const int rest = static_cast<int>(shape.length - whole);
  mov(rsi, ptr[rdi + offsetof(IndexStoreCall, from)]);
  mov(rdx, ptr[rdi + offsetof(IndexStoreCall, to)]);
  mov(r8, ptr[rdi + offsetof(IndexStoreCall, rows)]);
  mov(r9, ptr[rdi + offsetof(IndexStoreCall, first)]);
  mov(r10, ptr[rdi + offsetof(IndexStoreCall, steps)]);
  if (shape.cell != 1) {
    mov(rax, shape.cell);
    vmovq(Xmm(1), rax);
    s64 ? vpbroadcastq(vec(1), Xmm(1)) : vpbroadcastd(vec(1), Xmm(1));
  }
  Xbyak::Label row;
  L(row);
  vmovq(Xmm(0), r9);
  s64 ? vpbroadcastq(vec(0), Xmm(0)) : vpbroadcastd(vec(0), Xmm(0));
  xor_(ecx, ecx);
  if (whole > 0) {
    Xbyak::Label next;
    align(16);
    L(next);
    emit_vector(lanes());
    add(rcx, lanes());
    cmp(rcx, static_cast<uint32_t>(whole));
    jl(next, T_NEAR);
  }
  if (rest > 0) emit_vector(rest);
  add(rsi, ptr[rdi + offsetof(IndexStoreCall, from_bytes)]);
  add(rdx, ptr[rdi + offsetof(IndexStoreCall, to_bytes)]);
  add(r9, ptr[rdi + offsetof(IndexStoreCall, first_step)]);
  dec(r8);
  jnz(row, T_NEAR);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const IndexStoreCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void IndexStoreKernel::emit_vector(int count) {
  if (shape_.dtype == Dtype::s32) return emit_narrow(count);
  for (int half : {0, 1})
    if (const int here = std::min(lanes() / 2, count - half * lanes() / 2); here > 0) emit_wide(here, half);
}

void IndexStoreKernel::emit_narrow(int count) {
  const Xmm index = vec(2);
  load_bytes(index, 4, rsi + rcx * 4, count);
  if (shape_.cell != 1) vpmulld(index, index, vec(1));
  vpaddd(index, index, vec(0));
  vpaddd(index, index, ptr[r10 + rcx * 4]);
  store_bytes(index, 4, rdx + rcx * 4, count, shape_.streaming && count == lanes());
}

/// Half as many as there are lanes; partial vectors as pairs of 32-bit lanes.
void IndexStoreKernel::emit_wide(int count, int half) {
  const Xmm index = vec(2);
  const int first = half * lanes() / 2;
  if (count == lanes() / 2) {
    vpmovsxdq(index, ptr[rsi + rcx * 4 + first * 4]);
  } else {
    load_bytes(index, 4, rsi + rcx * 4 + first * 4, count);
    wide() ? vpmovsxdq(Zmm(index.getIdx()), Ymm(index.getIdx())) : vpmovsxdq(Ymm(index.getIdx()), Xmm(index.getIdx()));
  }
  if (shape_.cell != 1) vpmuldq(index, index, vec(1));
  vpaddq(index, index, vec(0));
  vpaddq(index, index, ptr[r10 + rcx * 8 + first * 8]);
  store_bytes(index, 4, rdx + rcx * 8 + first * 8, 2 * count, shape_.streaming && count == lanes() / 2);
}

}  // namespace partita::jit
