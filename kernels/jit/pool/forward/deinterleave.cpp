// SPDX-License-Identifier: Apache-2.0
// Code that takes rows apart: `stride` vectors of elements are loaded, each phase picks its lanes from them by
// permutations; long strides go element by element.
//   rdi next elements, rsi next places of phase 0, rdx rows left, rcx groups left, r8 and r9 the row's beginnings
#include "kernels/jit/pool/forward/deinterleave.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr int64_t kLongestPermuted = 8;  ///< vectors that AVX2 can hold beside what a permutation needs

}  // namespace

Deinterleave::Deinterleave(Isa isa, const InterleavedRows& rows)
    : Emitter(isa), rows_(rows), indices_(static_cast<size_t>(rows.stride)) {
  PT_ASSERT(rows.stride >= 2 && rows.length > 0);
  const bool permuted = rows.stride <= kLongestPermuted;
  const int64_t group = permuted ? rows.stride * lanes() : rows.stride;
  const int64_t group_places = permuted ? lanes() : 1;
  const int64_t groups = rows.length / group, rest = rows.length % group;
  const auto emit = [&](int64_t elements) { permuted ? emit_group(elements) : emit_singly(elements); };

  Xbyak::Label row;
  align(16);
  L(row);
  mov(r8, rdi);
  mov(r9, rsi);
  if (groups > 0) {
    Xbyak::Label next;
    mov(rcx, groups);
    align(16);
    L(next);
    emit(group);
    add(rdi, static_cast<uint32_t>(group * element_bytes(rows.dtype)));
    add(rsi, static_cast<uint32_t>(group_places * 4));
    dec(rcx);
    jnz(next, T_NEAR);
  }
  if (rest > 0) emit(rest);
  mov(rax, rows.row_bytes);
  lea(rdi, ptr[r8 + rax]);
  mov(rax, rows.places_bytes);
  lea(rsi, ptr[r9 + rax]);
  dec(rdx);
  jnz(row, T_NEAR);
  vzeroupper();
  ret();
  emit_constants();
  for (int64_t phase : rows.phases) {
    if (!permuted) break;
    align(64);
    L(indices_[static_cast<size_t>(phase)]);
    // The second of two vectors is named by the bit above the lane's number; where there is one vector, it is ignored.
    for (int j = 0; j < lanes(); ++j) dd(static_cast<uint32_t>((j * rows.stride + phase) % (2 * lanes())));
  }
  entry_ = reinterpret_cast<void (*)(const void*, float*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
}

/// Bit j: place j of the phase comes from the vector.
unsigned Deinterleave::lanes_from(int64_t phase, int64_t vector) const {
  unsigned mask = 0;
  for (int j = 0; j < lanes(); ++j)
    if ((j * rows_.stride + phase) / lanes() == vector) mask |= 1u << j;
  return mask;
}

/// The places of at most one vector of each phase.
void Deinterleave::emit_group(int64_t elements) {
  const int64_t vectors = (elements + lanes() - 1) / lanes();
  const int each = element_bytes(rows_.dtype);
  for (int64_t v = 0; v < vectors; ++v)
    load(source(v), rows_.dtype, Walk::next, RegExp(rdi) + static_cast<size_t>(v * lanes() * each),
         static_cast<int>(std::min<int64_t>(lanes(), elements - v * lanes())));
  for (int64_t phase : rows_.phases) {
    if (phase >= elements) break;
    wide() ? gather_wide(phase, vectors) : gather_narrow(phase, vectors);
    const int64_t places = (elements - phase + rows_.stride - 1) / rows_.stride;
    mov(rax, phase * rows_.phase_bytes);
    lea(r10, ptr[rsi + rax]);
    store(vec(static_cast<int>(rows_.stride)), Dtype::f32, false, RegExp(r10), static_cast<int>(places), false);
  }
}

/// Register `stride` = the phase's places. Those that come from beyond the vectors are not stored.
void Deinterleave::gather_wide(int64_t phase, int64_t vectors) {
  const Xmm made = vec(static_cast<int>(rows_.stride)), index = vec(static_cast<int>(rows_.stride) + 1);
  const auto numbers = ptr[rip + indices_[static_cast<size_t>(phase)]];
  vmovups(made, numbers);
  vpermi2ps(made, source(0), source(vectors > 1 ? 1 : 0));
  if (vectors > 2) vmovups(index, numbers);
  for (int64_t v = 2; v < vectors; ++v) {
    const unsigned mask = lanes_from(phase, v);
    if (mask == 0) continue;
    mov(eax, mask);
    kmovw(k3, eax);
    vpermps(Xbyak::Zmm(made.getIdx()) | k3, Xbyak::Zmm(index.getIdx()), Xbyak::Zmm(source(v).getIdx()));
  }
}

void Deinterleave::gather_narrow(int64_t phase, int64_t vectors) {
  const auto ymm = [](Xmm v) { return Xbyak::Ymm(v.getIdx()); };
  const Xmm made = vec(static_cast<int>(rows_.stride)), index = vec(static_cast<int>(rows_.stride) + 1),
            part = vec(static_cast<int>(rows_.stride) + 2);
  vmovups(index, ptr[rip + indices_[static_cast<size_t>(phase)]]);
  vpermps(ymm(made), ymm(index), ymm(source(0)));
  for (int64_t v = 1; v < vectors; ++v) {
    const unsigned mask = lanes_from(phase, v);
    if (mask == 0) continue;
    vpermps(ymm(part), ymm(index), ymm(source(v)));
    vblendps(made, made, part, static_cast<uint8_t>(mask));
  }
}

/// One place of each phase.
void Deinterleave::emit_singly(int64_t elements) {
  const int each = element_bytes(rows_.dtype);
  for (int64_t phase : rows_.phases) {
    if (phase >= elements) break;
    mov(rax, phase * each);
    lea(r10, ptr[rdi + rax]);
    load(vec(0), rows_.dtype, Walk::next, RegExp(r10), 1);
    mov(rax, phase * rows_.phase_bytes);
    lea(r10, ptr[rsi + rax]);
    store(vec(0), Dtype::f32, false, RegExp(r10), 1, false);
  }
}

}  // namespace partita::jit
