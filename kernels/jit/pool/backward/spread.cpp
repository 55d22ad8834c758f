// SPDX-License-Identifier: Apache-2.0
// Code of the spread. Cell i of a period (a stride's worth of cells) is reached by the windows window_of(i),
// window_of(i) - 1, .. `reach` of them; which tap it is of each follows from i alone.
//   Channel-last: vectors of channels, cell after cell.
//   Channel-first, strides up to 2: vectors of periods, one for each cell of a period; interleaved for the row.
//   Channel-first, longer strides: vectors along the row; each takes its windows from whole vectors by a permutation.
//   rdi call, rsi table row, r8 rows left, r9 windows of the plane, r10 cells of the plane, r11 planes left,
//   r12 cells of the row, r13 numbers, r14 cells of the period, r15 periods left, rbp windows of the period,
//   rbx their channels, rcx channel offset, rax row of windows, rdx its first tap; the stack holds the touched
//   addresses.
#include "kernels/jit/pool/backward/spread.hpp"

#include <algorithm>

#include "kernels/jit/code/imm32.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kTogether = 4;               ///< vectors computed together
constexpr int32_t kNever = INT32_MIN / 2;  ///< a tap number that no winner has, whatever is added

}  // namespace

SpreadKernel::SpreadKernel(Isa isa, const SpreadShape& shape) : Emitter(isa), shape_(shape) {
  most_covers_ = *std::max_element(shape.cover_counts.begin(), shape.cover_counts.end());
  const std::array saved = {rbx, rbp, r12, r13, r14, r15};
  for (const auto& reg : saved) push(reg);
  mov(r9, ptr[rdi + offsetof(SpreadCall, windows)]);
  mov(r10, ptr[rdi + offsetof(SpreadCall, cells)]);
  mov(r11, ptr[rdi + offsetof(SpreadCall, planes)]);
  mov(r13, ptr[rdi + offsetof(SpreadCall, numbers)]);
  const int touched = static_cast<int>(shape.touches.size()) * 8;
  sub(rsp, touched);
  for (int k = 0; k < touched; k += 8) {
    mov(rax, ptr[rdi + static_cast<int>(offsetof(SpreadCall, touched)) + k]);
    mov(ptr[rsp + k], rax);
  }
  emit_planes();
  add(rsp, touched);
  for (size_t k = saved.size(); k-- > 0;) pop(saved[k]);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const SpreadCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void SpreadKernel::emit_planes() {
  Xbyak::Label plane, row, done;
  L(plane);
  mov(rsi, ptr[rdi + offsetof(SpreadCall, rows)]);
  mov(r8, ptr[rdi + offsetof(SpreadCall, row_count)]);
  mov(r12, r10);
  L(row);
  for (size_t k = 0; k < shape_.cover_counts.size(); ++k) {
    Xbyak::Label other;
    const bool last = k + 1 == shape_.cover_counts.size();
    if (!last) {
      cmp(dword[rsi], shape_.cover_counts[k]);
      jne(other, T_NEAR);
    }
    emit_row(shape_.cover_counts[k]);
    if (!last) jmp(done, T_NEAR);
    L(other);
  }
  L(done);
  add(rsi, 4 * row_entries());
  add(r12, ptr[rdi + offsetof(SpreadCall, cells_row_bytes)]);
  dec(r8);
  jnz(row, T_NEAR);
  add(r9, ptr[rdi + offsetof(SpreadCall, windows_plane_bytes)]);
  add(r10, ptr[rdi + offsetof(SpreadCall, cells_plane_bytes)]);
  dec(r11);
  jnz(plane, T_NEAR);
}

/// Number of the tap that cell `cell` of a period is of the window `back` before its last one; -1: none.
int64_t SpreadKernel::tap_of(int64_t cell, int64_t back) const {
  const int64_t distance = (shape_.lead + cell) % shape_.stride + back * shape_.stride;
  return distance % shape_.dilation == 0 && distance / shape_.dilation < shape_.kernel ? distance / shape_.dilation
                                                                                       : -1;
}

void SpreadKernel::emit_row(int covers) {
  Xbyak::Label next;
  mov(rbp, r9);
  mov(r14, r12);
  mov(r15, ptr[rdi + offsetof(SpreadCall, periods)]);
  align(16);
  L(next);
  emit_touches();
  if (shape_.channel_last)
    emit_channels(covers);
  else
    shape_.stride <= kPhases ? emit_phases(covers) : emit_along_row(covers);
  dec(r15);
  jnz(next, T_NEAR);
}

/// The spread itself works on the nearest cache; meanwhile memory can bring what comes next.
void SpreadKernel::emit_touches() {
  for (size_t k = 0; k < shape_.touches.size(); ++k) {
    const auto slot = ptr[rsp + 8 * static_cast<int>(k)];
    mov(rax, slot);
    for (int64_t at = 0; at < shape_.touches[k].bytes; at += 64)
      shape_.touches[k].written ? prefetchw(ptr[rax + imm32(at)]) : prefetcht1(ptr[rax + imm32(at)]);
    add(rax, imm32(shape_.touches[k].bytes));
    mov(slot, rax);
  }
}

void SpreadKernel::emit_channels(int covers) {
  for (int64_t cell = 0; cell < shape_.stride; ++cell) {
    const int64_t whole = shape_.vectors / kTogether;
    const int rest = static_cast<int>(shape_.vectors % kTogether);
    mov(rbx, rbp);
    xor_(ecx, ecx);
    Xbyak::Label next;
    if (whole > 1) L(next);
    if (whole > 0) {
      emit_cell(covers, cell, kTogether);
      if (whole > 1 || rest > 0) {
        add(rbx, imm32(kTogether * bytes()));
        add(rcx, imm32(kTogether * bytes()));
      }
      if (whole > 1) {
        cmp(rcx, imm32(whole * kTogether * bytes()));
        jl(next, T_NEAR);
      }
    }
    if (rest > 0) emit_cell(covers, cell, rest);
  }
  add(rbp, imm32(shape_.window_bytes));
  add(r14, imm32(shape_.stride * shape_.cell_bytes));
}

/// `count` vectors of channels of one cell.
void SpreadKernel::emit_cell(int covers, int64_t cell, int count) {
  std::array<bool, kTogether> started{};
  for (int r = 0; r < covers; ++r) {
    mov(eax, dword[rsi + 4 + 8 * r]);
    if (shape_.maximum) mov(edx, dword[rsi + 8 + 8 * r]);
    for (int64_t back = 0; back < shape_.reach; ++back) {
      const int64_t tap = tap_of(cell, back);
      if (tap < 0) continue;
      const int64_t at = (window_of(cell) - back + shape_.reach - 1) * shape_.window_bytes;
      for (int v = 0; v < count; ++v) add_channels(vec(v), tap, at + v * bytes(), started[static_cast<size_t>(v)]);
    }
  }
  for (int v = 0; v < count; ++v) {
    if (!started[static_cast<size_t>(v)]) broadcast_bits(vec(v), 0);
    vmovups(ptr[r14 + rcx + imm32(cell * shape_.cell_bytes + v * bytes())], vec(v));
  }
}

void SpreadKernel::add_channels(const Xmm& sum, int64_t tap, int64_t at, bool& started) {
  const auto window = ptr[rbx + rax + imm32(at)];
  if (!shape_.maximum) {
    started ? vaddps(sum, sum, window) : vmovups(sum, window);
    started = true;
    return;
  }
  const auto winner = ptr[rbx + rax + imm32(at + shape_.winners_at)];
  const Xmm won = scratch(0);
  if (wide()) {
    vmovups(won, winner);
    vpcmpeqd(k1, won, ptr_b[r13 + rdx + imm32(4 * tap)]);
    started ? vaddps(sum | k1, sum, window) : vmovups(sum | k1 | T_z, window);
  } else {
    vpbroadcastd(won, ptr[r13 + rdx + imm32(4 * tap)]);
    vpcmpeqd(won, won, winner);
    vandps(started ? won : sum, won, window);
    if (started) vaddps(sum, sum, won);
  }
  started = true;
}

/// One vector of sums for each cell of a period; they are interleaved when they are stored.
void SpreadKernel::emit_phases(int covers) {
  const int64_t count = shape_.vectors;
  std::array<bool, kMostVectors> started{};
  mov(rbx, rbp);
  for (int r = 0; r < covers; ++r) {
    mov(eax, dword[rsi + 4 + 8 * r]);
    if (shape_.maximum) mov(edx, dword[rsi + 8 + 8 * r]);
    for (int64_t v = 0; v < count; ++v)
      for (int64_t cell = v % shape_.stride, back = 0; back < shape_.reach; ++back) {
        const int64_t tap = tap_of(cell, back);
        const int64_t at = (window_of(cell) - back + shape_.reach - 1) * 4 + v / shape_.stride * bytes();
        if (tap >= 0) add_channels(vec(static_cast<int>(v)), tap, at, started[static_cast<size_t>(v)]);
      }
  }
  for (int64_t v = 0; v < count; ++v) {
    const Xmm sum = vec(static_cast<int>(v));
    if (!started[static_cast<size_t>(v)]) broadcast_bits(sum, 0);
    if (shape_.stride == 1) vmovups(ptr[r14 + imm32(v * bytes())], sum);
    if (shape_.stride == 2 && v % 2 == 1) interleave(vec(static_cast<int>(v) - 1), sum, (v - 1) * bytes());
  }
  add(rbp, imm32(count / shape_.stride * bytes()));
  add(r14, imm32(count * bytes()));
}

/// Stores even[0], odd[0], even[1], odd[1], ..; overwrites `even`.
void SpreadKernel::interleave(const Xmm& even, const Xmm& odd, int64_t at) {
  const auto first = ptr[r14 + imm32(at)], second = ptr[r14 + imm32(at + bytes())];
  const Xmm low = scratch(0), high = scratch(1);
  if (!wide()) {
    vunpcklps(low, even, odd);
    vunpckhps(high, even, odd);
    vperm2f128(perm(even), perm(low), perm(high), 0x20);
    vmovups(first, even);
    vperm2f128(perm(even), perm(low), perm(high), 0x31);
    return vmovups(second, even);
  }
  Pattern order[2];
  for (int32_t l = 0; l < lanes(); ++l)
    for (int32_t half : {0, 1}) order[half].push_back((l + half * lanes()) / 2 + (l % 2) * lanes());
  vmovups(low, pattern(order[0]));
  vpermi2ps(Zmm(low.getIdx()), Zmm(even.getIdx()), Zmm(odd.getIdx()));
  vmovups(first, low);
  vmovups(high, pattern(order[1]));
  vpermi2ps(Zmm(high.getIdx()), Zmm(even.getIdx()), Zmm(odd.getIdx()));
  vmovups(second, high);
}

void SpreadKernel::emit_along_row(int covers) {
  for (int64_t first = 0; first < shape_.vectors; first += kTogether) {
    const int count = static_cast<int>(std::min<int64_t>(kTogether, shape_.vectors - first));
    std::array<bool, kTogether> started{};
    for (int r = 0; r < covers; ++r) {
      mov(eax, dword[rsi + 4 + 8 * r]);
      add(rax, rbp);
      if (shape_.maximum) {
        mov(edx, dword[rsi + 8 + 8 * r]);
        vpbroadcastd(scratch(3), ptr[r13 + rdx]);
      }
      for (int v = 0; v < count; ++v) {
        auto& begun = started[static_cast<size_t>(v)];
        if (shape_.maximum) {
          if (!begun) broadcast_bits(vec(v), 0);
          begun = true;
          emit_winner_vector(first + v, vec(v));
        } else {
          emit_vector(first + v, vec(v), begun);
        }
      }
    }
    for (int v = 0; v < count; ++v) {
      if (!started[static_cast<size_t>(v)]) broadcast_bits(vec(v), 0);
      vmovups(ptr[r14 + imm32((first + v) * bytes())], vec(v));
    }
  }
  add(rbp, imm32(shape_.vectors / shape_.stride * bytes()));
  add(r14, imm32(shape_.vectors * bytes()));
}

/// Sum of the windows over vector j of a period of vectors.
void SpreadKernel::emit_vector(int64_t j, const Xmm& sum, bool& started) {
  const int64_t first = j * lanes();
  Pattern windows, mask;
  for (int l = 0; l < lanes(); ++l) windows.push_back(static_cast<int32_t>(window_of(first + l) - window_of(first)));
  for (int64_t back = 0; back < shape_.reach; ++back) {
    mask.clear();
    for (int l = 0; l < lanes(); ++l) mask.push_back(tap_of(first + l, back) < 0 ? 0 : -1);
    const auto live = std::count(mask.begin(), mask.end(), -1);
    if (live == 0) continue;
    const auto from = ptr[rax + imm32((window_of(first) - back + shape_.reach - 1) * 4)];
    const Xmm to = started ? scratch(0) : sum;
    vmovups(scratch(1), pattern(windows));
    vpermps(perm(to), perm(scratch(1)), from);
    if (live < lanes()) vandps(to, to, pattern(mask));
    if (started) vaddps(sum, sum, to);
    started = true;
  }
}

/// Adds the gradients whose winning tap is the cell; scratch 3 holds the row's first tap in every lane.
void SpreadKernel::emit_winner_vector(int64_t j, const Xmm& sum) {
  const int64_t first = j * lanes();
  const Xmm won = scratch(0), order = scratch(1), tap = scratch(2);
  Pattern windows, taps;
  for (int l = 0; l < lanes(); ++l) windows.push_back(static_cast<int32_t>(window_of(first + l) - window_of(first)));
  vmovups(order, pattern(windows));
  for (int64_t back = 0; back < shape_.reach; ++back) {
    taps.clear();
    for (int l = 0; l < lanes(); ++l) {
      const int64_t number = tap_of(first + l, back);
      taps.push_back(number < 0 ? kNever : static_cast<int32_t>(number));
    }
    if (std::count(taps.begin(), taps.end(), kNever) == lanes()) continue;
    const int64_t at = (window_of(first) - back + shape_.reach - 1) * 4;
    vpaddd(tap, scratch(3), pattern(taps));
    vpermps(perm(won), perm(order), ptr[rax + imm32(at + shape_.winners_at)]);
    if (wide()) {
      vpcmpeqd(k1, won, tap);
      vpermps(perm(won) | k1 | T_z, perm(order), ptr[rax + imm32(at)]);
    } else {
      vpcmpeqd(tap, won, tap);
      vpermps(perm(won), perm(order), ptr[rax + imm32(at)]);
      vandps(won, won, tap);
    }
    vaddps(sum, sum, won);
  }
}

Ymm SpreadKernel::perm(const Xmm& v) const { return wide() ? Ymm(Zmm(v.getIdx())) : Ymm(v.getIdx()); }

}  // namespace partita::jit
