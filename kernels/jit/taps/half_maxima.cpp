// SPDX-License-Identifier: Apache-2.0
// Places take three operations: with S the sign bit in all bits of a float x, x ^ (S & 0x7fff) orders floats as signed
// integers, NaN at both ends; less that of minus infinity, they are unsigned ones, and NaN below it are above all.
//   rdi call, r9 r10 r11 rsi rows that are combined, rdx result, rcx element in the row, r8 rows left
#include "kernels/jit/taps/half_maxima.hpp"

#include "kernels/jit/code/imm32.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Zmm;

constexpr int kElements = 32;  ///< of a vector
constexpr int64_t kMostTogether = 16;
const Zmm kPart(28), kSign(29), kMagnitude(30), kLowest(31);

/// That of minus infinity, as a signed integer.
uint32_t lowest_of(Dtype dtype) { return dtype == Dtype::bf16 ? 0x807f : 0x83ff; }

}  // namespace

bool HalfMaxima::fits(Isa isa, const StencilShape& shape, const Expr& back) {
  return isa == Isa::avx512 && !shape.rows.streaming && shape.fold == Fold::max && bits_of(shape.dtype) == 16 &&
         !shape.every_second && !shape.reads_beyond && stores_alone(back) && shape.rows.out.size() == 1 &&
         shape.rows.out[0].dtype == shape.dtype && shape.rows.out[0].steps;
}

HalfMaxima::HalfMaxima(const StencilShape& shape)
    : Emitter(Isa::avx512), shape_(shape), together_(vectors_of_group(shape.rows.length, kElements, kMostTogether)) {
  mov(rax, ptr[rdi + offsetof(StencilCall, out)]);
  mov(rdx, ptr[rax]);
  mov(r8, ptr[rdi + offsetof(StencilCall, rows)]);
  mov(rax, ptr[rdi + offsetof(StencilCall, sources)]);
  for (int64_t s = 0; s < shape.sources; ++s) mov(Stencil::source(s), ptr[rax + static_cast<size_t>(8 * s)]);
  broadcast_bits(kMagnitude, 0x7fff7fff);
  broadcast_bits(kLowest, static_cast<int32_t>(lowest_of(shape.dtype) * 0x10001));
  mov(eax, static_cast<uint32_t>((uint64_t{1} << shape.rows.length % kElements) - 1));
  kmovd(k7, eax);

  Xbyak::Label row;
  align(16);
  L(row);
  emit_row();
  mov(rax, shape.row_bytes);
  for (int64_t s = 0; s < shape.sources; ++s) add(Stencil::source(s), rax);
  mov(rax, shape.rows.out[0].row_bytes);
  add(rdx, rax);
  dec(r8);
  jnz(row, T_NEAR);

  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const StencilCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void HalfMaxima::emit_row() {
  const int64_t vectors = shape_.rows.length / kElements, groups = vectors / together_;
  const int step = together_ * kElements;
  xor_(ecx, ecx);
  if (groups > 0) {
    Xbyak::Label next;
    align(16);
    L(next);
    emit_vectors(together_, false);
    add(rcx, step);
    cmp(rcx, static_cast<uint32_t>(groups * step));
    jl(next, T_NEAR);
  }
  if (const auto rest = static_cast<int>(vectors % together_); rest > 0) {
    emit_vectors(rest, false);
    add(rcx, rest * kElements);
  }
  if (shape_.rows.length % kElements != 0) emit_vectors(1, true);
}

/// Tap by tap.
void HalfMaxima::emit_vectors(int count, bool partial) {
  const Fetching fetching = shape_.fetching_of(int64_t{count} * kElements);
  bool first = true;
  for (int64_t s = 0; s < shape_.sources; ++s)
    for (const int64_t tap : shape_.taps) {
      const RegExp from = Stencil::source(s) + rcx * 2 + imm32(tap * 2);
      const bool fetched = !partial && shape_.is_fresh(s, tap);
      for (int v = 0; v < count; ++v) {
        const RegExp at = from + v * static_cast<int>(kCacheLine);
        partial ? vmovdqu16(kPart | k7 | T_z, ptr[at]) : vmovups(kPart, ptr[at]);
        if (fetched) fetch_line(at, fetching);
        const Zmm place = first ? Zmm(v) : kSign;
        order(place, kPart);
        vpsubw(place, place, kLowest);
        if (!first) vpmaxuw(Zmm(v), Zmm(v), place);
      }
      first = false;
    }
  for (int v = 0; v < count; ++v) {
    const RegExp to = rdx + rcx * 2 + v * static_cast<int>(kCacheLine);
    vpaddw(kPart, Zmm(v), kLowest);
    order(kSign, kPart);
    partial ? vmovdqu16(ptr[to] | k7, kSign) : vmovups(ptr[to], kSign);
  }
}

/// Floats to signed integers in their order, and back.
void HalfMaxima::order(const Zmm& to, const Zmm& from) {
  vpsraw(to, from, 15);
  vpternlogd(to, kMagnitude, from, 0x6a);  // (sign & magnitude) ^ from
}

}  // namespace partita::jit
