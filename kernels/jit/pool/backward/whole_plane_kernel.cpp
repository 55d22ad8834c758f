// SPDX-License-Identifier: Apache-2.0
// Rows: rdi call, rsi planes, rdx their gradients, r8 repetitions left, r10 where results are put together, r11 what
// was put together by the repetition before, r9 where that belongs, r12 where this one's do; rax and rcx for a moment.
// Columns: rsi cells, rdx what is fetched, r9 results, r8 cells left, r10 places, r11 gradients.
#include "kernels/jit/pool/backward/whole_plane_kernel.hpp"

#include <algorithm>

#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "src/base/check.hpp"

namespace partita::jit {
namespace {

using Xbyak::Opmask;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Of rows.
constexpr int kRowVectors = 4;
Zmm element_of(int vector) { return Zmm(vector); }
Zmm rank_of(int vector) { return Zmm(kRowVectors + vector); }
const Zmm kLeast(8), kMoment(9), kZeros(10), kLine(11);
constexpr int kRowConstants = 12;

/// Of columns: of the planes that are searched, and of those whose results are stored.
const Zmm kElements(0), kRanks(1), kNumber(2), kOne(3);
constexpr int kColumnConstants = 4, kColumnVectors = PlaneColumnsKernel::kVectors, kFirst = 8;
Zmm best(int vector) { return Zmm(kFirst + vector); }
Zmm place(int vector) { return Zmm(kFirst + kColumnVectors + vector); }
Zmm place_before(int vector) { return Zmm(kFirst + 2 * kColumnVectors + vector); }
constexpr int64_t kCellsAhead = 4;

}  // namespace

PlaneRowsKernel::PlaneRowsKernel(Dtype dtype, int64_t cells, bool streaming)
    : RankCode(dtype, kRowConstants), cells_(cells), streaming_(streaming) {
  PT_ASSERT(cells <= kMostCells);
  emit_in_frame(*this, {r12}, 0, [&] { emit(); });
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const Call*)>(reinterpret_cast<uintptr_t>(finish()));
}

/// What a repetition puts together, the next one stores: so stores drain while planes are searched, and nothing is read
/// that was written just before. The first one stores zeros where its own results will be.
void PlaneRowsKernel::emit() {
  emit_rank_constants(static_cast<int>(cells_ % vector_elements()));
  vpxord(kZeros, kZeros, kZeros);
  mov(rsi, ptr[rdi + offsetof(Call, src)]);
  mov(rdx, ptr[rdi + offsetof(Call, gradients)]);
  mov(r12, ptr[rdi + offsetof(Call, dst)]);
  mov(r8, ptr[rdi + offsetof(Call, repetitions)]);
  if (streaming_) {
    mov(r9, r12);
    mov(r10, ptr[rdi + offsetof(Call, lines)]);
    lea(r11, ptr[r10 + static_cast<int>(lines() * kCacheLine)]);
  } else {
    mov(r10, r12);
  }
  Xbyak::Label next;
  align(16);
  L(next);
  int64_t line = 0;
  for (int64_t plane = 0; plane < together(); ++plane) {
    emit_plane(plane);
    for (; streaming_ && line < (plane + 1) * lines() / together(); ++line) emit_line(line);
  }
  const auto bytes = static_cast<int>(together() * plane_bytes());
  add(rsi, bytes);
  add(rdx, static_cast<int>(together() * element_bytes()));
  if (streaming_) {
    mov(r9, r12);
    add(r12, bytes);
    xchg(r10, r11);
  } else {
    add(r10, bytes);
  }
  dec(r8);
  jnz(next, T_NEAR);
  for (line = 0; streaming_ && line < lines(); ++line) emit_line(line);
}

void PlaneRowsKernel::emit_plane(int64_t plane) {
  const auto at = static_cast<int>(plane * plane_bytes());
  const auto is_partial = [&](int v) { return (v + 1) * vector_elements() > cells_; };
  for (int v = 0; v < vectors(); ++v)
    load_elements(element_of(v), rsi + at + v * static_cast<int>(kCacheLine), is_partial(v));
  for (int v = 0; v < vectors(); ++v) rank(rank_of(v), element_of(v), is_partial(v));
  find_least();
  find_place();
  const auto from = rdx + static_cast<int>(plane * element_bytes()), to = r10 + at + rax * element_bytes();
  if (element_bytes() == 2) {
    movzx(ecx, word[from]);
    mov(word[to], cx);
  } else {
    mov(ecx, dword[from]);
    mov(dword[to], ecx);
  }
}

/// kLeast = the least rank, everywhere.
void PlaneRowsKernel::find_least() {
  Zmm least_rank = rank_of(0);
  for (int v = 1; v < vectors(); ++v) {
    least(kLeast, least_rank, rank_of(v));
    least_rank = kLeast;
  }
  const Ymm half(kLeast.getIdx()), other_half(kMoment.getIdx());
  const Xmm quarter(kLeast.getIdx()), other_quarter(kMoment.getIdx());
  vextracti64x4(other_half, least_rank, 1);
  least(half, Ymm(least_rank.getIdx()), other_half);
  vextracti128(other_quarter, half, 1);
  least(quarter, quarter, other_quarter);
  if (element_bytes() == 2) {
    vphminposuw(quarter, quarter);
    vpbroadcastw(kLeast, quarter);
    return;
  }
  for (const uint8_t neighbours : {0x4e, 0xb1}) {
    vpshufd(other_quarter, quarter, neighbours);
    least(quarter, quarter, other_quarter);
  }
  vpbroadcastd(kLeast, quarter);
}

/// rax = the number of the first cell that has it.
void PlaneRowsKernel::find_place() {
  for (int v = 0; v < vectors(); ++v) equal(Opmask(1 + v), rank_of(v), kLeast);
  if (element_bytes() == 2) {
    if (vectors() > 1) kunpckdq(k1, k2, k1);
  } else {
    if (vectors() > 1) kunpckwd(k1, k2, k1);
    if (vectors() > 3) kunpckwd(k3, k4, k3);
    if (vectors() > 2) kunpckdq(k1, k3, k1);
  }
  kmovq(rax, k1);
  tzcnt(rax, rax);
}

void PlaneRowsKernel::emit_line(int64_t line) {
  const auto at = static_cast<int>(line * kCacheLine);
  fetch_line(rsi + at, Fetching::near());
  vmovaps(kLine, ptr[r11 + at]);
  vmovntps(ptr[r9 + at], kLine);
  vmovaps(ptr[r11 + at], kZeros);
}

PlaneColumnsKernel::PlaneColumnsKernel(Dtype dtype, const Shape& shape)
    : RankCode(dtype, kColumnConstants), shape_(shape) {
  PT_ASSERT(vectors() <= kVectors);
  emit_in_frame(*this, {}, 0, [&] {
    Xbyak::Label only_searches, only_stores, done;
    emit_rank_constants(shape_.channels % vector_elements());
    fill(kOne, 1);
    vpxord(kNumber, kNumber, kNumber);
    mov(r10, ptr[rdi + offsetof(Call, places)]);
    mov(rsi, ptr[rdi + offsetof(Call, src)]);
    mov(r9, ptr[rdi + offsetof(Call, dst)]);
    test(r9, r9);
    jz(only_searches, T_NEAR);
    test(rsi, rsi);
    jz(only_stores, T_NEAR);
    emit(true, true);
    jmp(done, T_NEAR);
    L(only_searches);
    emit(true, false);
    jmp(done, T_NEAR);
    L(only_stores);
    emit(false, true);
    L(done);
  });
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const Call*)>(reinterpret_cast<uintptr_t>(finish()));
}

void PlaneColumnsKernel::emit(bool searches, bool stores) {
  const auto at_line = [this](int v) { return r10 + static_cast<int>(v * kCacheLine); };
  mov(r11, ptr[rdi + offsetof(Call, gradients)]);
  for (int v = 0; v < vectors(); ++v) {
    if (searches) {
      fill(best(v), UINT32_MAX);
      vpxord(place(v), place(v), place(v));
    }
    if (stores) vmovaps(place_before(v), ptr[at_line(v)]);
  }
  const int64_t ahead = searches ? std::min(kCellsAhead, shape_.cells) : 0;
  mov(rdx, rsi);
  advance(rdx, ahead * shape_.src_step);
  emit_cells(shape_.cells - ahead, searches, stores);
  mov(rdx, ptr[rdi + offsetof(Call, ahead)]);
  emit_cells(ahead, searches, stores);
  for (int v = 0; searches && v < vectors(); ++v) vmovaps(ptr[at_line(v)], place(v));
}

void PlaneColumnsKernel::emit_cells(int64_t cells, bool searches, bool stores) {
  if (cells == 0) return;
  Xbyak::Label next;
  mov(r8, cells);
  align(16);
  L(next);
  for (int v = 0; v < vectors(); ++v) {
    if (searches) search(v);
    if (stores) store(v);
  }
  if (searches) {
    advance(rsi, shape_.src_step);
    advance(rdx, shape_.src_step);
  }
  if (stores) advance(r9, shape_.dst_step);
  plus(kNumber, kNumber, kOne);
  dec(r8);
  jnz(next, T_NEAR);
}

void PlaneColumnsKernel::search(int vector) {
  const auto at = static_cast<int>(vector * kCacheLine);
  prefetcht0(ptr[rdx + at]);
  load_elements(kElements, rsi + at, is_partial(vector));
  rank(kRanks, kElements, false);
  less(k2, kRanks, best(vector));
  least(best(vector), best(vector), kRanks);
  take(place(vector), k2, kNumber, false);
}

void PlaneColumnsKernel::store(int vector) {
  const auto at = static_cast<int>(vector * kCacheLine);
  load_elements(kElements, r11 + at, is_partial(vector));
  equal(k2, place_before(vector), kNumber);
  take(kElements, k2, kElements, true);
  store_elements(r9 + at, kElements, is_partial(vector), shape_.streaming);
}

}  // namespace partita::jit
