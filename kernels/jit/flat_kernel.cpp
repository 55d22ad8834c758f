// SPDX-License-Identifier: Apache-2.0
// Code of a flat kernel: rows, whole vectors of a row, the partial vector at its end.
//   rdi call, rsi scratch address, rdx operand address, rcx element in the row, r8 rows left; the first operands'
//   addresses stay in registers, the stack holds the others' and, behind them, spilled values.
#include "kernels/jit/flat_kernel.hpp"

#include <array>
#include <bit>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr int kSaved = 5;  ///< of the registers for addresses, the callee's own
const std::array<Xbyak::Reg64, 7> kPointers = {Xbyak::util::rbx, Xbyak::util::r12, Xbyak::util::r13, Xbyak::util::r14,
                                               Xbyak::util::r15, Xbyak::util::r10, Xbyak::util::r11};
/// Vectors of one turn of the loop; more where the expression is short, so that the loop itself costs little.
constexpr int kVectors = 4;
constexpr size_t kShort = 12;

/// `ahead` elements behind the index.
RegExp element(const Xbyak::Reg64& base, const Xbyak::Reg64& index, Dtype dtype, int ahead) {
  const int each = bits_of(dtype) / 8;
  return base + index * each + ahead * each;
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

  vectors_ = lanes.code.size() <= kShort ? kVectors : 1;
  push(rbp);
  mov(rbp, rsp);
  for (int k = 0; k < kSaved; ++k) push(kPointers[static_cast<size_t>(k)]);
  sub(rsp, spill_at + body.spill_slots() * 64);
  int operand = 0;
  for (const auto& [list, count] :
       {std::pair{offsetof(RowCall, in), shape.in.size()}, std::pair{offsetof(RowCall, out), shape.out.size()}}) {
    mov(rsi, ptr[rdi + list]);
    for (size_t k = 0; k < count; ++k, ++operand) {
      mov(in_register(operand) ? pointer(operand) : rax, ptr[rsi + 8 * static_cast<int>(k)]);
      if (!in_register(operand)) mov(ptr[rsp + 8 * operand], rax);
    }
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
        in_register(k) ? add(pointer(k), rax) : add(ptr[rsp + 8 * k], rax);
      }
      ++k;
    }
  dec(r8);
  jnz(row, T_NEAR);

  if (shape.streaming && shape.fenced) sfence();
  vzeroupper();
  for (int k = 0; k < kSaved; ++k) mov(kPointers[static_cast<size_t>(k)], ptr[rbp - 8 * (k + 1)]);
  leave();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const RowCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

bool FlatKernel::in_register(int operand) { return operand < static_cast<int>(kPointers.size()); }

/// The register that holds the operand's address: its own, or rdx.
Xbyak::Reg64 FlatKernel::pointer(int operand) {
  if (in_register(operand)) return kPointers[static_cast<size_t>(operand)];
  mov(rdx, ptr[rsp + 8 * operand]);
  return rdx;
}

bool FlatKernel::folds_row(size_t output) const {
  return shape_.out[output].fold != Fold::none && !shape_.out[output].steps;
}

void FlatKernel::emit_row(Body& body) {
  const int64_t whole = shape_.length / lanes() * lanes(), turn = vectors_ * lanes(), turns = whole / turn;
  const int rest = static_cast<int>(shape_.length - whole);
  for (size_t k = 0; k < shape_.out.size(); ++k)
    if (folds_row(k)) broadcast_bits(vec(accumulators_[k]), std::bit_cast<int32_t>(identity_of(shape_.out[k].fold)));
  xor_(ecx, ecx);
  body.emit_row_values(hooks_for(lanes(), 0));
  if (turns > 0) {
    Xbyak::Label next;
    mov(r9, turns * turn);
    align(16);
    L(next);
    for (int v = 0; v < vectors_; ++v) body.emit(hooks_for(lanes(), v * lanes()));
    add(rcx, static_cast<int>(turn));
    cmp(rcx, r9);
    jl(next, T_NEAR);
  }
  int done = 0;
  for (; done < whole - turns * turn; done += lanes()) body.emit(hooks_for(lanes(), done));
  if (rest > 0) body.emit(hooks_for(rest, done));
  for (size_t k = 0; k < shape_.out.size(); ++k) {
    if (!folds_row(k)) continue;
    fold_lanes_to_memory(vec(accumulators_[k]), shape_.out[k].fold, pointer(static_cast<int>(shape_.in.size() + k)));
  }
}

BodyHooks FlatKernel::hooks_for(int count, int ahead) {
  BodyHooks hooks;
  hooks.load = [this, count, ahead](Xmm dst, int operand) { load_operand(dst, operand, count, ahead); };
  hooks.store = [this, count, ahead](Xmm value, const Lane& lane) { store_operand(value, lane, count, ahead); };
  hooks.index = [this, ahead](Xmm dst, int axis) { load_index(dst, axis, ahead); };
  return hooks;
}

void FlatKernel::load_operand(Xmm dst, int operand, int count, int ahead) {
  const RowOperand& o = shape_.in[static_cast<size_t>(operand)];
  const Xbyak::Reg64 base = pointer(operand);
  if (!o.steps) return load(dst, o.dtype, Walk::same, base, count);
  const RegExp from = element(base, rcx, o.dtype, ahead);
  if (shape_.prefetch > 0 && count == lanes()) prefetcht0(ptr[from + shape_.prefetch]);
  load(dst, o.dtype, Walk::next, from, count);
}

void FlatKernel::store_operand(Xmm value, const Lane& lane, int count, int ahead) {
  const auto output = static_cast<size_t>(lane.imm);
  const RowOperand& o = shape_.out[output];
  if (o.fold != Fold::none && lane.flag) {
    vcvtdq2ps(scratch(2), value);
    value = scratch(2);
  }
  if (folds_row(output)) return fold_into(vec(accumulators_[output]), value, o.fold, count);
  const Xbyak::Reg64 base = pointer(static_cast<int>(shape_.in.size() + output));
  if (o.fold != Fold::none) return fold_to_memory(value, o.fold, element(base, rcx, Dtype::f32, ahead), count);
  store(value, o.dtype, lane.flag, element(base, rcx, o.dtype, ahead), count, shape_.streaming && count == lanes());
}

void FlatKernel::load_index(Xmm dst, int axis, int ahead) {
  mov(rsi, ptr[rdi + offsetof(RowCall, coordinates)]);
  vpbroadcastd(dst, ptr[rsi + 4 * axis]);
  if (axis != inner_axis_) return;
  lea(eax, ptr[rcx + ahead]);
  vmovd(Xmm(scratch(0).getIdx()), eax);
  vpbroadcastd(scratch(0), Xmm(scratch(0).getIdx()));
  vpaddd(dst, dst, scratch(0));
  vpaddd(dst, dst, ptr[rip + lane_numbers()]);
}

}  // namespace partita::jit
