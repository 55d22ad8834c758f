// SPDX-License-Identifier: Apache-2.0
// Code of the search and of the sums. Lanes are channels, whose winners lie anywhere: sums go lane by lane, from a
// stack slot that holds the names of all of them, because processors without instructions that scatter would do so
// anyway, and the others are no faster at it.
#include "kernels/jit/pool/backward/far_maximum_kernel.hpp"

#include <bit>
#include <limits>

#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/pool/compete.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr int kTogether = 2;  ///< windows that are searched side by side, so that each waits less for itself

constexpr int32_t lowest() { return std::bit_cast<int32_t>(-std::numeric_limits<float>::infinity()); }

}  // namespace

/// rsi cells, r8 maxima, r9 names, r10 first taps, r11 windows left, edx name of the window's first tap; rax cell and
/// rcx taps left of a window.
RowMaximaKernel::RowMaximaKernel(Isa isa, int64_t kernel, int64_t stride, int64_t dilation)
    : Emitter(isa), kernel_(kernel), stride_(stride), dilation_(dilation) {
  Xbyak::Label next, rest, done;
  mov(rsi, ptr[rdi + offsetof(RowMaximaCall, cells)]);
  mov(r8, ptr[rdi + offsetof(RowMaximaCall, maxima)]);
  mov(r9, ptr[rdi + offsetof(RowMaximaCall, names)]);
  mov(r10, ptr[rdi + offsetof(RowMaximaCall, first)]);
  mov(r11, ptr[rdi + offsetof(RowMaximaCall, windows)]);
  mov(rdx, ptr[rdi + offsetof(RowMaximaCall, first_window_name)]);
  L(next);
  cmp(r11, kTogether);
  jl(rest, T_NEAR);
  emit_windows(kTogether);
  sub(r11, kTogether);
  jmp(next, T_NEAR);
  L(rest);
  test(r11, r11);
  jz(done, T_NEAR);
  emit_windows(1);
  dec(r11);
  jmp(rest, T_NEAR);
  L(done);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const RowMaximaCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void RowMaximaKernel::emit_windows(int count) {
  const int apart = static_cast<int>(stride_) * vector_bytes(), step = static_cast<int>(dilation_) * vector_bytes();
  const Xmm tap = scratch(0), taps_step = scratch(1);
  for (int w = 0; w < count; ++w) {
    vpbroadcastd(winner(w), ptr[r10 + 4 * w]);
    broadcast_bits(best(w), lowest());
  }
  broadcast_bits(tap, 0);
  broadcast_bits(taps_step, step);
  mov(rax, rsi);
  mov(ecx, static_cast<uint32_t>(kernel_));
  Xbyak::Label next;
  align(16);
  L(next);
  for (int w = 0; w < count; ++w) {
    vmovups(value(w), ptr[rax + w * apart]);
    emit_compete(*this, best(w), winner(w), value(w), tap, scratch(2), scratch(3));
  }
  vpaddd(tap, tap, taps_step);
  add(rax, step);
  dec(ecx);
  jnz(next);
  for (int w = 0; w < count; ++w) {
    vmovd(Xmm(tap.getIdx()), edx);
    vpbroadcastd(tap, Xmm(tap.getIdx()));
    vpaddd(winner(w), winner(w), tap);
    vmovups(ptr[r8 + w * vector_bytes()], best(w));
    vmovups(ptr[r9 + w * vector_bytes()], winner(w));
    add(edx, apart);
  }
  add(rsi, count * apart);
  add(r8, count * vector_bytes());
  add(r9, count * vector_bytes());
  add(r10, count * 4);
}

/// rsi maxima of the window, rbx from these to their names, r8 rows, r9 their number, r10 gradient of the window,
/// r11 windows left, rdx gradients of the cells; rax, r12 and rcx row, what is left of them, and where one lies.
WindowSumsKernel::WindowSumsKernel(Isa isa) : Emitter(isa) {
  emit_in_frame(*this, {rbx, r12}, 64, [&] {
    mov(rsi, ptr[rdi + offsetof(WindowSumsCall, maxima)]);
    mov(rbx, ptr[rdi + offsetof(WindowSumsCall, names_at)]);
    mov(r8, ptr[rdi + offsetof(WindowSumsCall, rows)]);
    mov(r9, ptr[rdi + offsetof(WindowSumsCall, row_count)]);
    mov(r10, ptr[rdi + offsetof(WindowSumsCall, windows)]);
    mov(r11, ptr[rdi + offsetof(WindowSumsCall, window_count)]);
    mov(rdx, ptr[rdi + offsetof(WindowSumsCall, gradients)]);
    Xbyak::Label next;
    L(next);
    emit_window();
    add(rsi, vector_bytes());
    add(r10, vector_bytes());
    dec(r11);
    jnz(next, T_NEAR);
  });
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const WindowSumsCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void WindowSumsKernel::emit_window() {
  const Xmm best = vec(0), winner = vec(1), value = vec(2), name = vec(3);
  Xbyak::Label next, found;
  mov(rcx, ptr[r8]);
  add(rcx, rsi);
  vmovups(best, ptr[rcx]);
  vmovups(winner, ptr[rcx + rbx]);
  lea(rax, ptr[r8 + 8]);
  mov(r12, r9);
  L(next);
  dec(r12);
  jz(found, T_NEAR);
  mov(rcx, ptr[rax]);
  add(rcx, rsi);
  vmovups(value, ptr[rcx]);
  vmovups(name, ptr[rcx + rbx]);
  emit_compete(*this, best, winner, value, name, scratch(0), scratch(1));
  add(rax, 8);
  jmp(next, T_NEAR);
  L(found);
  vmovups(ptr[rsp], winner);
  for (int l = 0; l < lanes(); ++l) {
    const Xmm sum(l % kTogether);
    mov(ecx, ptr[rsp + 4 * l]);
    vmovss(sum, ptr[r10 + 4 * l]);
    vaddss(sum, sum, ptr[rdx + rcx + 4 * l]);
    vmovss(ptr[rdx + rcx + 4 * l], sum);
  }
}

}  // namespace partita::jit
