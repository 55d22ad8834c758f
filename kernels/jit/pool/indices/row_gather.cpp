// SPDX-License-Identifier: Apache-2.0
// Code of the gather along rows. Each lane takes its window from whole vectors of windows by a permutation.
//   rdi call, rsi row of the table, r8 rows left, r9 numbers, r10 cells, r11 orders, r12 bases, r13 vectors left,
//   rbx, r14, r15, rcx bases of the vectors of a group, rax row of windows, rdx rows of windows done, rbp windows along
//   x left.
#include "kernels/jit/pool/indices/row_gather.hpp"

#include <array>

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

const std::array kBases = {Xbyak::util::rbx, Xbyak::util::r14, Xbyak::util::r15, Xbyak::util::rcx};

}  // namespace

RowGatherKernel::RowGatherKernel(Isa isa, const RowGatherShape& shape)
    : Emitter(isa), shape_(shape), together_(wide() ? 4 : 2) {
  counts_ = 3 * together_;
  row_name_ = counts_ + 1;
  ones_ = counts_ + 2;
  const std::array saved = {rbx, rbp, r12, r13, r14, r15};
  for (const auto& reg : saved) push(reg);
  sub(rsp, vector_bytes());
  mov(rsi, ptr[rdi + offsetof(RowGatherCall, rows)]);
  mov(r8, ptr[rdi + offsetof(RowGatherCall, row_count)]);
  mov(r10, ptr[rdi + offsetof(RowGatherCall, cells)]);
  broadcast_bits(vec(counts_), 0);
  broadcast_bits(vec(ones_), -1);
  Xbyak::Label row;
  align(16);
  L(row);
  emit_row();
  add(rsi, static_cast<int>(shape.row_entries * 4));
  dec(r8);
  jnz(row, T_NEAR);
  vmovups(ptr[rsp], vec(counts_));
  xor_(eax, eax);
  for (int l = 0; l < lanes(); ++l) {
    mov(edx, dword[rsp + 4 * l]);
    add(rax, rdx);
  }
  add(qword[rdi + offsetof(RowGatherCall, found)], rax);
  add(rsp, vector_bytes());
  for (size_t k = saved.size(); k-- > 0;) pop(saved[k]);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(RowGatherCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void RowGatherKernel::emit_row() {
  const int64_t vectors = (shape_.cells + lanes() - 1) / lanes(), groups = vectors / together_;
  mov(r9, ptr[rdi + offsetof(RowGatherCall, numbers)]);
  mov(r11, ptr[rdi + offsetof(RowGatherCall, orders)]);
  mov(r12, ptr[rdi + offsetof(RowGatherCall, bases)]);
  vpbroadcastd(vec(row_name_), ptr[rsi]);
  if (groups > 0) {
    Xbyak::Label next;
    mov(r13d, static_cast<uint32_t>(groups));
    L(next);
    emit_group(together_);
    dec(r13);
    jnz(next, T_NEAR);
  }
  if (vectors % together_ > 0) emit_group(static_cast<int>(vectors % together_));
  // Vectors went past the row's end.
  sub(r10, static_cast<int>((vectors * lanes() - shape_.cells) * 4));
}

void RowGatherKernel::emit_group(int vectors) {
  const int bytes = vector_bytes();
  Xbyak::Label row, along, done;
  for (int v = 0; v < vectors; ++v) {
    vpaddd(name(v), vec(row_name_), ptr[r9 + v * bytes]);
    vmovups(order(v), ptr[r11 + v * bytes]);
    movsxd(kBases[static_cast<size_t>(v)], dword[r12 + 4 * v]);
    broadcast_bits(sum(v), 0);
  }
  xor_(edx, edx);
  cmp(edx, dword[rsi + 4]);
  je(done, T_NEAR);
  L(row);
  movsxd(rax, dword[rsi + rdx * 4 + 8]);
  add(rax, ptr[rdi + offsetof(RowGatherCall, windows)]);
  mov(rbp, ptr[rdi + offsetof(RowGatherCall, along)]);
  L(along);
  for (int v = 0; v < vectors; ++v) emit_windows(v);
  add(rax, 4);
  dec(rbp);
  jnz(along, T_NEAR);
  inc(edx);
  cmp(edx, dword[rsi + 4]);
  jl(row, T_NEAR);
  L(done);
  for (int v = 0; v < vectors; ++v) vmovups(ptr[r10 + v * bytes], sum(v));
  add(r9, vectors * bytes);
  add(r10, vectors * bytes);
  add(r11, vectors * bytes);
  add(r12, vectors * 4);
}

void RowGatherKernel::emit_windows(int v) {
  const Xbyak::RegExp from = rax + kBases[static_cast<size_t>(v)];
  const int gradients = static_cast<int>(shape_.gradients_at);
  if (wide()) {
    const Zmm taken(scratch(0).getIdx()), places(order(v).getIdx());
    vpermd(taken, places, ptr[from]);
    vpcmpeqd(k1, taken, name(v));
    vpermps(taken | k1 | T_z, places, ptr[from + gradients]);
    vaddps(sum(v), sum(v), taken);
    vpsubd(vec(counts_) | k1, vec(counts_), vec(ones_));
    return;
  }
  const Ymm taken(scratch(0).getIdx()), equal(scratch(1).getIdx()), places(order(v).getIdx());
  vpermd(equal, places, ptr[from]);
  vpcmpeqd(equal, equal, Ymm(name(v).getIdx()));
  vpermps(taken, places, ptr[from + gradients]);
  vandps(taken, taken, equal);
  vaddps(sum(v), sum(v), taken);
  vpsubd(vec(counts_), vec(counts_), equal);
}

}  // namespace partita::jit
