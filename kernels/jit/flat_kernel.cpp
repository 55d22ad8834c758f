// SPDX-License-Identifier: Apache-2.0
// Code of a flat kernel: rows, whole vectors of a row, the partial vector at its end.
//   rdi call, rsi scratch address, rdx operand address, rcx element in the row, r8 rows left; the stack holds the
//   operands' addresses and, behind them, spilled values.
#include "kernels/jit/flat_kernel.hpp"

#include <bit>

#include "src/base/check.hpp"
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
    : Emitter(isa), shape_(shape), inner_axis_(inner_axis), accumulators_(shape.out.size(), -1) {
  int registers = value_registers();
  for (size_t k = 0; k < shape.out.size(); ++k)
    if (folds_row(k)) accumulators_[k] = --registers;
  PT_ASSERT(value_registers() - registers <= kMaxRowFolds);
  const int pointers = static_cast<int>(shape.in.size() + shape.out.size());
  const int spill_at = (pointers * 8 + 63) / 64 * 64;
  Body body(*this, lanes, {0, registers, rsp + spill_at},
            [&](int operand) { return !shape.in[static_cast<size_t>(operand)].steps; });

  push(rbp);
  mov(rbp, rsp);
  sub(rsp, spill_at + body.spill_slots() * 64);
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
  emit_row(body);
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

bool FlatKernel::folds_row(size_t output) const {
  return shape_.out[output].fold != Fold::none && !shape_.out[output].steps;
}

void FlatKernel::emit_row(Body& body) {
  const int64_t whole = shape_.length / lanes() * lanes();
  const int rest = static_cast<int>(shape_.length - whole);
  for (size_t k = 0; k < shape_.out.size(); ++k)
    if (folds_row(k)) broadcast_bits(vec(accumulators_[k]), std::bit_cast<int32_t>(identity_of(shape_.out[k].fold)));
  xor_(ecx, ecx);
  body.emit_row_values(hooks_for(lanes()));
  if (whole > 0) {
    Xbyak::Label next;
    mov(r9, whole);
    align(16);
    L(next);
    body.emit(hooks_for(lanes()));
    add(rcx, lanes());
    cmp(rcx, r9);
    jl(next, T_NEAR);
  }
  if (rest > 0) body.emit(hooks_for(rest));
  for (size_t k = 0; k < shape_.out.size(); ++k) {
    if (!folds_row(k)) continue;
    mov(rdx, ptr[rsp + 8 * static_cast<int>(shape_.in.size() + k)]);
    fold_lanes_to_memory(vec(accumulators_[k]), shape_.out[k].fold, rdx);
  }
}

BodyHooks FlatKernel::hooks_for(int count) {
  BodyHooks hooks;
  hooks.load = [this, count](Xmm dst, int operand) { load_operand(dst, operand, count); };
  hooks.store = [this, count](Xmm value, const Lane& lane) { store_operand(value, lane, count); };
  hooks.index = [this](Xmm dst, int axis) { load_index(dst, axis); };
  return hooks;
}

void FlatKernel::load_operand(Xmm dst, int operand, int count) {
  const RowOperand& o = shape_.in[static_cast<size_t>(operand)];
  mov(rdx, ptr[rsp + 8 * operand]);
  if (!o.steps) return load(dst, o.dtype, Walk::same, rdx, count);
  if (shape_.prefetch > 0 && count == lanes()) prefetcht0(ptr[element(rdx, rcx, o.dtype) + shape_.prefetch]);
  load(dst, o.dtype, Walk::next, element(rdx, rcx, o.dtype), count);
}

void FlatKernel::store_operand(Xmm value, const Lane& lane, int count) {
  const auto output = static_cast<size_t>(lane.imm);
  const RowOperand& o = shape_.out[output];
  if (o.fold != Fold::none && lane.flag) {
    vcvtdq2ps(scratch(2), value);
    value = scratch(2);
  }
  if (folds_row(output)) return fold_into(vec(accumulators_[output]), value, o.fold, count);
  mov(rdx, ptr[rsp + 8 * static_cast<int>(shape_.in.size() + output)]);
  if (o.fold != Fold::none) return fold_to_memory(value, o.fold, element(rdx, rcx, Dtype::f32), count);
  store(value, o.dtype, lane.flag, element(rdx, rcx, o.dtype), count, shape_.streaming && count == lanes());
}

void FlatKernel::load_index(Xmm dst, int axis) {
  mov(rsi, ptr[rdi + offsetof(RowCall, coordinates)]);
  vpbroadcastd(dst, ptr[rsi + 4 * axis]);
  if (axis != inner_axis_) return;
  vmovd(Xmm(scratch(0).getIdx()), ecx);
  vpbroadcastd(scratch(0), Xmm(scratch(0).getIdx()));
  vpaddd(dst, dst, scratch(0));
  vpaddd(dst, dst, ptr[rip + lane_numbers()]);
}

}  // namespace partita::jit
