// SPDX-License-Identifier: Apache-2.0
// Code of the gather. A cell's windows are compared with its own index, vector by vector of channels: what names it is
// added. Which windows these are comes with the call, so one kernel serves all of them.
//   rdi call, rsi row of windows, rbx steps of channels, rcx first channel of the vectors, r8 indices of the window,
//   r9 its first operand of front, r10 rows of windows left, r11 windows of the row left, r12 column, r13 cells left,
//   r14 index of the cell, r15 first window of the cell, rax and rdx for a moment. The stack holds the operands of back
//   and the results, the other operands of front, and spilled values.
//   Vectors: sums of the cell, what was found, the cell's index, ones, then those of front and of back.
#include "kernels/jit/pool/indices/gather.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/jit/pool/channel_groups.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;

}  // namespace

GatherKernel::GatherKernel(Isa isa, const GatherShape& shape) : Emitter(isa), shape_(shape), together_(wide() ? 4 : 2) {
  counts_ = together_;
  name_ = together_ + 1;
  const int taken = wide() ? together_ + 3 : together_ + 2;
  ones_ = together_ + 2;  // AVX2 needs none
  const int middle = taken + (wide() ? 2 * kLeastRegisters : kLeastRegisters);
  const auto never = [](int) { return false; };
  const size_t slots = shape.back_in.size() + shape.out.size() + shape.front_in.size();
  const int spill_at = aligned(static_cast<int>(slots) * 8);
  Body front(*this, shape.front, {taken, middle, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, shape.back, {middle, value_registers(), rsp + back_at}, never);

  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, back_at + back.spill_slots() * 64, [&] {
    for (size_t k = 0; k < shape.back_in.size() + shape.out.size(); ++k) {
      const bool input = k < shape.back_in.size();
      if (!shape.stores) break;
      mov(rax, ptr[rdi + (input ? offsetof(GatherCall, in) : offsetof(GatherCall, out))]);
      mov(rax, ptr[rax + 8 * static_cast<int>(input ? k : k - shape.back_in.size())]);
      mov(ptr[slot(k)], rax);
    }
    mov(rbx, ptr[rdi + offsetof(GatherCall, steps)]);
    mov(r12, ptr[rdi + offsetof(GatherCall, columns)]);
    mov(r13, ptr[rdi + offsetof(GatherCall, cells)]);
    mov(r14, ptr[rdi + offsetof(GatherCall, name)]);
    broadcast_bits(vec(counts_), 0);
    if (wide()) vpternlogd(vec(ones_), vec(ones_), vec(ones_), 0xff);
    BodyHooks none;
    front.emit_constants();
    back.emit_constants();
    front.emit_row_values(none);
    back.emit_row_values(none);
    emit_cells(front, back);
    sub(rsp, 64);
    vmovups(ptr[rsp], vec(counts_));
    xor_(eax, eax);
    for (int l = 0; l < lanes(); ++l) {
      mov(edx, dword[rsp + 4 * l]);
      add(rax, rdx);
    }
    add(qword[rdi + offsetof(GatherCall, found)], rax);
  });
  emit_constants();
  align(32);
  L(valid_);
  for (int l = 0; l < lanes(); ++l) dd(l < shape.channels % lanes() ? ~0u : 0u);
  entry_ = reinterpret_cast<void (*)(GatherCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void GatherKernel::emit_cells(Body& front, Body& back) {
  const Xmm name = vec(name_);
  Xbyak::Label cell;
  align(16);
  L(cell);
  movsxd(r15, dword[r12]);
  if (wide()) {
    shape_.in[1].dtype == Dtype::s64 ? vpbroadcastq(name, r14) : vpbroadcastd(name, r14d);
  } else {
    vmovq(Xmm(name_), r14);
    shape_.in[1].dtype == Dtype::s64 ? vpbroadcastq(name, Xmm(name_)) : vpbroadcastd(name, Xmm(name_));
  }
  emit_channel_groups(*this, shape_.channels, together_, lanes(),
                      [&](int vectors, int last) { emit_group(front, back, vectors, last); });
  if (shape_.stores)
    for (size_t k = 0; k < shape_.back_in.size() + shape_.out.size(); ++k)
      advance(qword[slot(k)], k < shape_.back_in.size() ? shape_.in[static_cast<size_t>(shape_.back_in[k])].x
                                                        : shape_.out[k - shape_.back_in.size()].x);
  add(r12, 8);
  advance(r14, shape_.cell_step);
  dec(r13);
  jnz(cell, T_NEAR);
}

/// `vectors` vectors of channels of one cell, the last one with `last` of them.
void GatherKernel::emit_group(Body& front, Body& back, int vectors, int last) {
  Xbyak::Label row, column, done;
  const auto count = [&](int v) { return v + 1 == vectors ? last : lanes(); };
  for (int v = 0; v < vectors; ++v) broadcast_bits(vec(v), 0);
  mov(rsi, ptr[rdi + offsetof(GatherCall, windows)]);
  mov(r10, ptr[rdi + offsetof(GatherCall, window_rows)]);
  test(r10, r10);
  jz(done, T_NEAR);
  cmp(dword[r12 + 4], 0);
  je(done, T_NEAR);
  const size_t operands = shape_.stores ? shape_.front_in.size() : 0;
  const auto view = [&](size_t k) { return shape_.in[k == 0 ? 1 : static_cast<size_t>(shape_.front_in[k - 1])]; };
  L(row);
  for (size_t k = 0; k <= operands; ++k) {
    const Reg64 to = k == 0 ? r8 : k == 1 ? r9 : rdx;
    mov(rax, view(k).x);
    imul(rax, r15);
    mov(to, ptr[rsi + 8 * static_cast<int>(k)]);
    add(to, rax);
    if (k > 1) mov(ptr[front_slot(k - 1)], rdx);
  }
  mov(r11d, dword[r12 + 4]);
  L(column);
  for (int v = 0; v < vectors; ++v) emit_window(front, v, count(v));
  for (size_t k = 0; k <= operands; ++k) {
    if (k < 2)
      advance(k == 0 ? r8 : r9, view(k).x);
    else
      advance(qword[front_slot(k - 1)], view(k).x);
  }
  dec(r11d);
  jnz(column, T_NEAR);
  add(rsi, 8 * static_cast<int>(1 + shape_.front_in.size()));
  dec(r10);
  jnz(row, T_NEAR);
  L(done);
  for (int v = 0; shape_.stores && v < vectors; ++v) emit_cell(back, v, count(v));
}

void GatherKernel::emit_window(Body& front, int vector, int count) {
  prefetch(r8, shape_.in[1], vector);
  if (!shape_.stores) {
    compare(vector, count);
    wide() ? vpsubd(vec(counts_) | k2, vec(counts_), vec(ones_)) : vpsubd(vec(counts_), vec(counts_), scratch(1));
    return;
  }
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    size_t k = 0;
    while (shape_.front_in[k] != operand) ++k;
    load_operand(dst, shape_.in[static_cast<size_t>(operand)], window_operand(k), vector, count);
  };
  hooks.store = [&](Xmm value, const Lane& lane) { take(value, lane.flag, vector, count); };
  front.emit(hooks);
}

/// Operand `k` of front at the window; may use rdx.
Reg64 GatherKernel::window_operand(size_t k) {
  if (k == 0) return r9;
  mov(rdx, ptr[front_slot(k)]);
  return rdx;
}

void GatherKernel::emit_cell(Body& back, int vector, int count) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    size_t k = 0;
    while (shape_.back_in[k] != operand) ++k;
    mov(rdx, ptr[slot(k)]);
    load_operand(dst, shape_.in[static_cast<size_t>(operand)], rdx, vector, count);
  };
  hooks.skeleton = [&](Xmm dst) { vmovaps(dst, vec(vector)); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    const Dtype dtype = shape_.out[k].dtype;
    const int each = element_bytes(dtype);
    mov(rdx, ptr[slot(shape_.back_in.size() + k)]);
    store(value, dtype, lane.flag, rdx + rcx * each + vector * lanes() * each, count,
          shape_.streaming && count == lanes());
  };
  back.emit(hooks);
}

void GatherKernel::load_operand(const Xmm& dst, const PoolView& view, const Reg64& base, int vector, int count) {
  const int each = element_bytes(view.dtype);
  if (view.c == 0) return load(dst, view.dtype, Walk::same, base, count);
  prefetch(base, view, vector);
  load(dst, view.dtype, Walk::next, base + rcx * each + vector * lanes() * each, count);
}

/// What vectors further on need, on its way early: loads alone keep too little under way.
void GatherKernel::prefetch(const Reg64& base, const PoolView& view, int vector) {
  const int each = element_bytes(view.dtype), bytes = lanes() * each;
  for (int at = 0; at < bytes; at += 64)
    fetch_line(base + rcx * each + vector * bytes + at, Fetching::of_few_streams());
}

/// Adds `value` to the cell where the window names it.
void GatherKernel::take(const Xmm& value, bool integer, int vector, int count) {
  Xmm gradient = value;
  if (integer) {
    gradient = scratch(3);
    vcvtdq2ps(gradient, value);
  }
  compare(vector, count);
  if (wide()) {
    vaddps(vec(vector) | k2, vec(vector), gradient);
    vpsubd(vec(counts_) | k2, vec(counts_), vec(ones_));
    return;
  }
  vpsubd(vec(counts_), vec(counts_), scratch(1));
  vandps(scratch(1), scratch(1), gradient);
  vaddps(vec(vector), vec(vector), scratch(1));
}

/// k2, or with AVX2 scratch 1: whether the window's indices name the cell.
void GatherKernel::compare(int vector, int count) {
  if (wide()) return compare_wide(vector, count);
  const bool s64 = shape_.in[1].dtype == Dtype::s64;
  const Xmm equal = scratch(1), other = scratch(2), name = vec(name_);
  if (!s64) {
    const int at = vector * lanes() * 4;
    load_bytes(equal, 4, r8 + rcx * 4 + at, count);
    if (shape_.channels_step) vpsubd(equal, equal, ptr[rbx + rcx * 4 + at]);
    vpcmpeqd(equal, equal, name);
  } else {
    for (int half : {0, 1}) {
      const int here = std::min(4, count - 4 * half), at = (vector * lanes() + 4 * half) * 8;
      const Xmm to = half == 0 ? equal : other;
      if (here <= 0) {
        vpxor(to, to, to);
        continue;
      }
      load_bytes(to, 4, r8 + rcx * 8 + at, 2 * here);
      if (shape_.channels_step) vpsubq(to, to, ptr[rbx + rcx * 8 + at]);
      vpcmpeqq(to, to, name);
    }
    vshufps(equal, equal, other, 0x88);
    vpermpd(y(equal), y(equal), 0xd8);
  }
  if (count < lanes()) vandps(equal, equal, ptr[rip + valid_]);
}

void GatherKernel::compare_wide(int vector, int count) {
  const Xmm name = vec(name_), own = scratch(0);
  const auto masked = [&](const Opmask& result, const Opmask& mask, int here, int whole) {
    if (here == whole) return result;
    mov(eax, (1u << here) - 1);
    kmovd(mask, eax);
    return result | mask;
  };
  if (shape_.in[1].dtype == Dtype::s32) {
    const int at = vector * 64;
    if (shape_.channels_step) vpaddd(own, name, ptr[rbx + rcx * 4 + at]);
    vpcmpeqd(masked(k2, k3, count, 16), shape_.channels_step ? own : name, ptr[r8 + rcx * 4 + at]);
    return;
  }
  for (int half : {0, 1}) {
    const int here = std::min(8, count - 8 * half), at = vector * 128 + 64 * half;
    if (here <= 0) return;
    if (shape_.channels_step) vpaddq(own, name, ptr[rbx + rcx * 8 + at]);
    vpcmpeqq(masked(half == 0 ? k2 : k4, k3, here, 8), shape_.channels_step ? own : name, ptr[r8 + rcx * 8 + at]);
    if (half == 1) kunpckbw(k2, k4, k2);
  }
}

}  // namespace partita::jit
