// SPDX-License-Identifier: Apache-2.0
// Code of a flat kernel: rows, whole vectors of a row, the partial vector at its end.
//   rdi call, rsi scratch address, rdx operand address, rcx element in the row, r8 rows left; the stack holds the
//   operands' addresses and, behind them, spilled values.
#include "kernels/jit/flat_kernel.hpp"

#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

RegExp element(const Xbyak::Reg64& base, const Xbyak::Reg64& index, Dtype dtype) {
  return base + index * (bits_of(dtype) / 8);
}

}  // namespace

FlatKernel::FlatKernel(Isa isa, const Lanes& lanes, const RowShape& shape, int inner_axis)
    : Emitter(isa), pointers_(static_cast<int>(shape.in.size() + shape.out.size())) {
  const int spill_at = (pointers_ * 8 + 63) / 64 * 64;
  Body body(*this, lanes, 0, value_registers(), rsp + spill_at);
  const int frame = spill_at + body.spill_slots() * 64;

  push(rbp);
  mov(rbp, rsp);
  sub(rsp, frame);
  mov(rsi, ptr[rdi + offsetof(RowCall, in)]);
  for (size_t k = 0; k < shape.in.size(); ++k) {
    mov(rax, ptr[rsi + 8 * static_cast<int>(k)]);
    mov(ptr[rsp + 8 * static_cast<int>(k)], rax);
  }
  mov(rsi, ptr[rdi + offsetof(RowCall, out)]);
  for (size_t k = 0; k < shape.out.size(); ++k) {
    mov(rax, ptr[rsi + 8 * static_cast<int>(k)]);
    mov(ptr[rsp + 8 * static_cast<int>(shape.in.size() + k)], rax);
  }
  mov(r8, ptr[rdi + offsetof(RowCall, rows)]);
  body.emit_constants();

  Xbyak::Label row;
  align(16);
  L(row);
  emit_row(body, shape, inner_axis);
  int k = 0;
  for (const auto* side : {&shape.in, &shape.out})
    for (const RowOperand& operand : *side) {
      if (operand.row_bytes != 0) {
        mov(rax, operand.row_bytes);
        add(ptr[rsp + 8 * k], rax);
      }
      ++k;
    }
  dec(r8);
  jnz(row, T_NEAR);

  if (shape.streaming) sfence();
  vzeroupper();
  leave();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const RowCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void FlatKernel::emit_row(Body& body, const RowShape& shape, int inner_axis) {
  const int64_t whole = shape.length / lanes() * lanes();
  const int rest = static_cast<int>(shape.length - whole);
  xor_(ecx, ecx);
  if (whole > 0) {
    Xbyak::Label next;
    mov(r9, whole);
    align(16);
    L(next);
    emit_vectors(body, shape, inner_axis, lanes());
    add(rcx, lanes());
    cmp(rcx, r9);
    jl(next, T_NEAR);
  }
  if (rest > 0) emit_vectors(body, shape, inner_axis, rest);
}

void FlatKernel::emit_vectors(Body& body, const RowShape& shape, int inner_axis, int count) {
  const int first_out = static_cast<int>(shape.in.size());
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const RowOperand& o = shape.in[static_cast<size_t>(operand)];
    mov(rdx, ptr[rsp + 8 * operand]);
    load(dst, o.dtype, o.steps ? Walk::next : Walk::same, o.steps ? element(rdx, rcx, o.dtype) : RegExp(rdx), count);
  };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const RowOperand& o = shape.out[static_cast<size_t>(lane.imm)];
    mov(rdx, ptr[rsp + 8 * (first_out + lane.imm)]);
    store(value, o.dtype, lane.flag, element(rdx, rcx, o.dtype), count, shape.streaming && count == lanes());
  };
  hooks.index = [&](Xmm dst, int axis) {
    mov(rsi, ptr[rdi + offsetof(RowCall, coordinates)]);
    vpbroadcastd(dst, ptr[rsi + 4 * axis]);
    if (axis != inner_axis) return;
    vmovd(Xmm(scratch(0).getIdx()), ecx);
    vpbroadcastd(scratch(0), Xmm(scratch(0).getIdx()));
    vpaddd(dst, dst, scratch(0));
    vpaddd(dst, dst, ptr[rip + lane_numbers()]);
  };
  body.emit(hooks);
}

}  // namespace partita::jit
