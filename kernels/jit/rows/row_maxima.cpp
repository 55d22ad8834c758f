// SPDX-License-Identifier: Apache-2.0
// A few maxima side by side, so that not every element waits for the one before it; the last vector of a row overlaps
// the one before.
//   rdi the row, rsi its number in the result, rdx rows left, rcx where in the row
#include "kernels/jit/rows/row_maxima.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kMostStraight = 16;  ///< vectors of a row that are no loop
constexpr int32_t kAllButSigns = 0x7fff7fff, kSigns = static_cast<int32_t>(0x80008000);

}  // namespace

bool RowMaxima::fits(Isa isa, Dtype dtype, int64_t length) {
  const bool known = dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
  return known && length * element_bytes(dtype) >= int64_t{lanes_of(isa)} * 4;
}

RowMaxima::RowMaxima(Isa isa, Dtype dtype, int64_t length, int64_t row_bytes)
    : Emitter(isa), dtype_(dtype), bytes_(element_bytes(dtype)), length_(length) {
  PT_ASSERT(fits(isa, dtype, length));
  Xbyak::Label row;
  align(16);
  L(row);
  emit_row();
  fold_quarters();
  words() ? emit_largest_word() : emit_largest_float();
  vmaxss(xmm0, xmm0, dword[rsi]);
  vmovss(dword[rsi], xmm0);
  advance(rdi, row_bytes);
  add(rsi, static_cast<int>(sizeof(float)));
  dec(rdx);
  jnz(row, T_NEAR);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const void*, float*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
}

/// A row's vectors, folded into the first of the accumulators.
void RowMaxima::emit_row() {
  const int64_t bytes = length_ * bytes_, vectors = bytes / vector_bytes();
  const auto used = static_cast<int>(std::min<int64_t>(kAccumulators, vectors));
  for (int i = 0; i < used; ++i) begin(i, rdi + i * vector_bytes());
  int64_t done = used;
  if (vectors > kMostStraight) {
    const int step = kAccumulators * vector_bytes();
    const int64_t end = vectors / kAccumulators * kAccumulators;
    Xbyak::Label next;
    mov(ecx, step);
    align(16);
    L(next);
    for (int i = 0; i < kAccumulators; ++i) take(i, rdi + rcx + i * vector_bytes());
    add(rcx, step);
    cmp(rcx, static_cast<uint32_t>(end * vector_bytes()));
    jl(next, T_NEAR);
    done = end;
  }
  for (; done < vectors; ++done) take(static_cast<int>(done % used), rdi + static_cast<int>(done * vector_bytes()));
  if (bytes % vector_bytes() != 0) take(0, rdi + static_cast<int>(bytes - vector_bytes()));
  for (int i = 1; i < used; ++i) fold(largest(0), least(0), largest(i), least(i));
}

void RowMaxima::begin(int i, const RegExp& at) {
  vmovups(largest(i), ptr[at]);
  if (words()) vmovaps(least(i), largest(i));
}

void RowMaxima::take(int i, const RegExp& at) {
  if (!words()) return vmaxps(largest(i), largest(i), ptr[at]);
  vmovups(scratch(0), ptr[at]);
  fold(largest(i), least(i), scratch(0), scratch(0));
}

void RowMaxima::fold(Xmm most, Xmm fewest, Xmm other_most, Xmm other_fewest) {
  if (!words()) return vmaxps(most, most, other_most);
  vpmaxsw(most, most, other_most);
  vpminsw(fewest, fewest, other_fewest);
}

void RowMaxima::fold_quarters() {
  const int most = largest(0).getIdx(), fewest = least(0).getIdx();
  const int other_most = scratch(0).getIdx(), other_fewest = scratch(1).getIdx();
  if (wide()) {
    vextractf64x4(Ymm(other_most), Zmm(most), 1);
    if (words()) vextractf64x4(Ymm(other_fewest), Zmm(fewest), 1);
    fold(Ymm(most), Ymm(fewest), Ymm(other_most), Ymm(other_fewest));
  }
  const auto upper = [&](int to, int from) {
    wide() ? vextractf32x4(Xmm(to), Ymm(from), 1) : vextractf128(Xmm(to), Ymm(from), 1);
  };
  upper(other_most, most);
  if (words()) upper(other_fewest, fewest);
  fold(Xmm(most), Xmm(fewest), Xmm(other_most), Xmm(other_fewest));
}

/// What is left are four floats or eight words.
void RowMaxima::emit_largest_float() {
  const Xmm other(1);
  vpshufd(other, xmm0, 0x4e);
  vmaxps(xmm0, xmm0, other);
  vpshufd(other, xmm0, 0xb1);
  vmaxps(xmm0, xmm0, other);
}

/// Positive numbers are larger than all negative ones as integers, too; without any, the least integer is the largest.
void RowMaxima::emit_largest_word() {
  const Xmm fewest(kAccumulators);
  wide() ? vpxord(xmm0, xmm0, everywhere(kAllButSigns)) : vpxor(xmm0, xmm0, everywhere(kAllButSigns));
  vphminposuw(xmm0, xmm0);
  wide() ? vpxord(fewest, fewest, everywhere(kSigns)) : vpxor(fewest, fewest, everywhere(kSigns));
  vphminposuw(fewest, fewest);
  vmovd(eax, xmm0);
  vmovd(ecx, fewest);
  xor_(ecx, kSigns);
  xor_(eax, kAllButSigns);
  test(ax, ax);
  cmovs(eax, ecx);
  if (dtype_ == Dtype::bf16) shl(eax, 16);
  vmovd(xmm0, eax);
  if (dtype_ == Dtype::f16) vcvtph2ps(xmm0, xmm0);
}

}  // namespace partita::jit
