// SPDX-License-Identifier: Apache-2.0
// Code of a row of linear results.
//   rdi call, rsi the place's weights, rdx results left, ecx moves left, r8 to r11 rows, others the operands
#include "kernels/jit/resample/linear_kernel.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/code/frame.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr std::array kRowRegisters = {8, 9, 10, 11};
constexpr std::array kOperandRegisters = {3, 12, 13, 14, 15};

Reg64 row_register(size_t row) { return Reg64(kRowRegisters[row]); }
Reg64 operand_register(size_t k) { return Reg64(kOperandRegisters[k]); }

}  // namespace

int64_t LinearKernel::most_channels(size_t rows) { return (rows <= 2 ? 8 : 4) * lanes_of(Isa::avx512); }

LinearKernel::LinearKernel(const Lanes& back, const LinearShape& shape) : Emitter(Isa::avx512), s_(shape) {
  PT_ASSERT(s_.rows <= kMostRows && operands() <= kMostOperands && s_.channels <= most_channels(s_.rows));
  Body body(*this, back, {newer(vectors()).getIdx(), value_registers(), rsp}, [&](int k) {
    const LinearOperand& o = s_.in[static_cast<size_t>(k)];
    return !o.steps && o.x_bytes == 0;
  });
  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, body.spill_slots() * 64, [&] {
    emit_start();
    body.emit_constants();
    body.emit_row_values(hooks(0, false));
    Xbyak::Label result, moved, single, done;
    align(16);
    L(result);
    mov(ecx, dword[rsi + offsetof(LinearPlace, moves)]);
    test(ecx, ecx);
    jz(moved, T_NEAR);
    emit_move();
    L(moved);
    cmp(dword[rsi + offsetof(LinearPlace, single)], 0);
    jne(single, T_NEAR);
    emit_results(body, false);
    jmp(done, T_NEAR);
    L(single);
    emit_results(body, true);
    L(done);
    for (size_t k = 0; k < operands(); ++k) advance(operand_register(k), operand(k).x_bytes);
    add(rsi, static_cast<int>(sizeof(LinearPlace)));
    dec(rdx);
    jnz(result, T_NEAR);
    if (s_.streaming) sfence();
  });
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const LinearCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void LinearKernel::emit_start() {
  const auto read = [&](const Reg64& to, size_t list, size_t k) {
    mov(rax, ptr[rdi + static_cast<int>(list)]);
    mov(to, ptr[rax + 8 * static_cast<int>(k)]);
  };
  for (size_t r = 0; r < s_.rows; ++r) read(row_register(r), offsetof(LinearCall, rows), r);
  for (size_t k = 0; k < s_.in.size(); ++k) read(operand_register(k), offsetof(LinearCall, in), k);
  for (size_t k = 0; k < s_.out.size(); ++k) read(operand_register(s_.in.size() + k), offsetof(LinearCall, out), k);
  mov(rax, ptr[rdi + offsetof(LinearCall, weights)]);
  for (size_t r = 0; s_.weighted && r < s_.rows; ++r) vbroadcastss(weight(r), ptr[rax + 4 * static_cast<int>(r)]);
  mov(rsi, ptr[rdi + offsetof(LinearCall, places)]);
  mov(rdx, ptr[rdi + offsetof(LinearCall, count)]);
  for (int v = 0; v < vectors(); ++v) vpxord(newer(v), newer(v), newer(v));
}

/// Reads so many places as ecx says.
void LinearKernel::emit_move() {
  Xbyak::Label place;
  L(place);
  for (int v = 0; v < vectors(); ++v) {
    vmovaps(older(v), newer(v));
    const int bytes = lanes() * bits_of(s_.source) / 8, behind = v * bytes;
    for (size_t r = 0; r < s_.rows; ++r) {
      const Xbyak::Zmm to = r == 0 ? newer(v) : moment();
      load(to, s_.source, Walk::next, row_register(r) + behind, channels_of(v));
      if (s_.fetched != 0 && r + 1 == s_.rows && begins_line(behind, bytes))
        prefetcht1(ptr[row_register(r) + (behind + s_.fetched)]);
      if (!s_.weighted) {
        if (r > 0) vaddps(newer(v), newer(v), to);
      } else {
        r == 0 ? vmulps(to, to, weight(r)) : vfmadd231ps(newer(v), to, weight(r));
      }
    }
  }
  for (size_t r = 0; r < s_.rows; ++r) advance(row_register(r), s_.source_bytes);
  dec(ecx);
  jnz(place, T_NEAR);
}

void LinearKernel::emit_results(Body& body, bool single) {
  for (int v = 0; v < vectors(); ++v) body.emit(hooks(v, single));
}

BodyHooks LinearKernel::hooks(int vector, bool single) {
  BodyHooks hooks;
  hooks.skeleton = [this, vector, single](Xmm dst) {
    if (single) return vmovaps(dst, newer(vector));
    vmulps(dst, older(vector), ptr_b[rsi + offsetof(LinearPlace, older)]);
    vfmadd231ps(dst, newer(vector), ptr_b[rsi + offsetof(LinearPlace, newer)]);
  };
  hooks.load = [this, vector](Xmm dst, int k) {
    const auto number = static_cast<size_t>(k);
    load(dst, operand(number).dtype, operand(number).steps ? Walk::next : Walk::same, elements(number, vector),
         channels_of(vector));
  };
  hooks.store = [this, vector](Xmm value, const Lane& lane) {
    const size_t number = s_.in.size() + static_cast<size_t>(lane.imm);
    const int count = channels_of(vector);
    store(value, operand(number).dtype, lane.flag, elements(number, vector), count, s_.streaming && count == lanes());
  };
  return hooks;
}

int LinearKernel::channels_of(int vector) const {
  return static_cast<int>(std::min<int64_t>(lanes(), s_.channels - int64_t{vector} * lanes()));
}

RegExp LinearKernel::elements(size_t k, int vector) const {
  const int behind = operand(k).steps ? vector * lanes() * bits_of(operand(k).dtype) / 8 : 0;
  return operand_register(k) + behind;
}

}  // namespace partita::jit
