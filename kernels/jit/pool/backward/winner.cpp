// SPDX-License-Identifier: Apache-2.0
// Code of the search. Every window starts with the lowest value and its first tap inside the source; a tap wins where
// it is greater or NaN, unless the best is NaN already. So what lies outside never wins.
//   rdi call, rsi table row, r8 rows left, r9 source of the plane, r10 winners of the plane, r11 planes left,
//   r12 winners of the row, r13 winners, r14 first taps, r15 windows left, rbp source of the window, rbx its channels,
//   rcx channel offset, rax source row, rdx taps of a gather.
#include "kernels/jit/pool/backward/winner.hpp"

#include <array>
#include <bit>
#include <limits>

#include "kernels/jit/code/imm32.hpp"
#include "kernels/jit/pool/compete.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kTogether = 4;  ///< vectors searched together: each waits for its comparisons

}  // namespace

WinnerKernel::WinnerKernel(Isa isa, const WinnerShape& shape) : Emitter(isa), shape_(shape) {
  const std::array saved = {rbx, rbp, r12, r13, r14, r15};
  for (const auto& reg : saved) push(reg);
  mov(r9, ptr[rdi + offsetof(WinnerCall, source)]);
  mov(r10, ptr[rdi + offsetof(WinnerCall, winners)]);
  mov(r11, ptr[rdi + offsetof(WinnerCall, planes)]);
  if (wide()) vmovups(scratch(2), ptr[rip + order_]);
  emit_planes();
  for (size_t k = saved.size(); k-- > 0;) pop(saved[k]);
  vzeroupper();
  ret();
  emit_constants();
  align(64);
  L(order_);
  for (int l = 0; l < lanes(); ++l) dd(static_cast<uint32_t>(l * shape.stride));
  entry_ = reinterpret_cast<void (*)(const WinnerCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void WinnerKernel::emit_planes() {
  Xbyak::Label plane, row;
  L(plane);
  mov(rsi, ptr[rdi + offsetof(WinnerCall, rows)]);
  mov(r8, ptr[rdi + offsetof(WinnerCall, row_count)]);
  mov(r12, r10);
  L(row);
  mov(r13, r12);
  mov(r14, ptr[rdi + offsetof(WinnerCall, first)]);
  mov(r15, ptr[rdi + offsetof(WinnerCall, windows)]);
  mov(rbp, r9);
  Xbyak::Label next;
  align(16);
  L(next);
  shape_.channel_last ? emit_channels() : emit_along_row();
  dec(r15);
  jnz(next, T_NEAR);
  add(rsi, 4 * row_entries());
  add(r12, ptr[rdi + offsetof(WinnerCall, winners_row_bytes)]);
  dec(r8);
  jnz(row, T_NEAR);
  add(r9, ptr[rdi + offsetof(WinnerCall, source_plane_bytes)]);
  add(r10, ptr[rdi + offsetof(WinnerCall, winners_plane_bytes)]);
  dec(r11);
  jnz(plane, T_NEAR);
}

/// One window, vectors of channels.
void WinnerKernel::emit_channels() {
  const int64_t whole = shape_.vectors / kTogether;
  const int rest = static_cast<int>(shape_.vectors % kTogether), step = kTogether * vector_bytes();
  mov(rbx, rbp);
  xor_(ecx, ecx);
  Xbyak::Label next;
  if (whole > 0) {
    L(next);
    emit_windows(kTogether, vector_bytes());
    add(rbx, step);
    add(rcx, step);
    if (whole > 1) {
      cmp(rcx, imm32(whole * step));
      jl(next, T_NEAR);
    }
  }
  if (rest > 0) emit_windows(rest, vector_bytes());
  add(rbp, imm32(shape_.stride * shape_.cell_bytes));
  add(r13, imm32(shape_.window_bytes));
  add(r14, 4);
}

/// A vector of windows.
void WinnerKernel::emit_along_row() {
  mov(rbx, rbp);
  xor_(ecx, ecx);
  emit_windows(1, 0);
  add(rbp, imm32(lanes() * shape_.stride * 4));
  add(r13, vector_bytes());
  add(r14, vector_bytes());
}

/// `count` vectors, `apart` bytes from each other. Registers of vector v: best 3v, winner 3v + 1, tap 3v + 2.
void WinnerKernel::emit_windows(int count, int64_t apart) {
  const Xmm first = scratch(0), number = scratch(1);
  shape_.channel_last ? vpbroadcastd(first, ptr[r14]) : vmovups(first, ptr[r14]);
  vpbroadcastd(number, ptr[rsi + imm32(4 * shape_.tap_rows)]);
  for (int v = 0; v < count; ++v) {
    vpaddd(vec(3 * v + 1), first, number);
    broadcast_bits(vec(3 * v), std::bit_cast<int32_t>(-std::numeric_limits<float>::infinity()));
  }
  for (int64_t r = 0; r < shape_.tap_rows; ++r) {
    mov(eax, dword[rsi + imm32(4 * r)]);
    for (int64_t tap = 0; tap < shape_.kernel; ++tap) {
      const int64_t own = r * shape_.kernel + tap;
      broadcast_bits(number,
                     shape_.tap_names.empty() ? static_cast<int32_t>(own) : shape_.tap_names[static_cast<size_t>(own)]);
      for (int v = 0; v < count; ++v) {
        load_taps(vec(3 * v + 2), tap * shape_.dilation * shape_.cell_bytes + v * apart);
        emit_compete(*this, vec(3 * v), vec(3 * v + 1), vec(3 * v + 2), number, scratch(2), scratch(3));
      }
    }
  }
  for (int v = 0; v < count; ++v) {
    vmovups(ptr[r13 + rcx + imm32(v * apart)], vec(3 * v + 1));
    if (shape_.bests_at != 0) vmovups(ptr[r13 + rcx + imm32(shape_.bests_at + v * apart)], vec(3 * v));
  }
}

/// Every stride-th number from `at` on; channel-last: neighbours.
void WinnerKernel::load_taps(const Xmm& dst, int64_t at) {
  const RegExp from = rbx + rax + imm32(at);
  if (shape_.channel_last || shape_.stride == 1) return vmovups(dst, ptr[from]);
  if (shape_.stride == 2) {
    vmovups(dst, ptr[from]);
    if (wide()) {
      vpermt2ps(Zmm(dst.getIdx()), Zmm(scratch(2).getIdx()), ptr[from + vector_bytes()]);
    } else {
      vshufps(dst, dst, ptr[from + vector_bytes()], 0x88);
      vpermpd(Ymm(dst.getIdx()), Ymm(dst.getIdx()), 0xd8);
    }
    return;
  }
  lea(rdx, ptr[from]);
  if (!wide()) vmovups(scratch(2), ptr[rip + order_]);
  if (wide()) {
    kxnorw(k2, k2, k2);
    vgatherdps(Zmm(dst.getIdx()) | k2, ptr[rdx + Zmm(scratch(2).getIdx()) * 4]);
  } else {
    vpcmpeqd(scratch(3), scratch(3), scratch(3));
    vgatherdps(Ymm(dst.getIdx()), ptr[rdx + Ymm(scratch(2).getIdx()) * 4], Ymm(scratch(3).getIdx()));
  }
}

}  // namespace partita::jit
