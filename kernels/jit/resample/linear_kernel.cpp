// SPDX-License-Identifier: Apache-2.0
// Code of a row of linear results.
//   rdi call, rsi the place, rdx places left, ecx moves left, r8 to r11 rows, others the operands
#include "kernels/jit/resample/linear_kernel.hpp"

#include "kernels/jit/code/frame.hpp"
#include "src/base/check.hpp"

namespace partita::jit {

using Xbyak::Xmm;

int64_t LinearKernel::most_channels(size_t rows) { return (rows <= 2 ? 8 : 4) * lanes_of(Isa::avx512); }

LinearKernel::LinearKernel(const Lanes& back, const LinearShape& shape)
    : OperandCode(shape.in, shape.out, shape.channels), s_(shape) {
  PT_ASSERT(s_.rows.count <= kMostRows && s_.channels <= most_channels(s_.rows.count));
  Body body(*this, back, {newer(vectors()).getIdx(), value_registers(), rsp}, [this](int k) { return repeats(k); });
  emit_in_frame(*this, {rbx, r12, r13, r14}, body.spill_slots() * 64, [&] {
    emit_start();
    body.emit_constants();
    body.emit_row_values(hooks(0, Taken::both));
    s_.gradient ? emit_gradient(body) : emit_interpolation(body);
  });
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const LinearCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void LinearKernel::emit_interpolation(Body& body) {
  Xbyak::Label result, move, moved, single, done;
  align(16);
  L(result);
  if (s_.skips) emit_skip();
  mov(ecx, dword[rsi + offsetof(LinearPlace, moves)]);
  L(move);
  dec(ecx);
  js(moved, T_NEAR);
  for (int v = 0; v < vectors(); ++v) {
    vmovaps(older(v), newer(v));
    emit_source(newer(v), v);
  }
  emit_next_source();
  jmp(move, T_NEAR);
  L(moved);
  cmp(dword[rsi + offsetof(LinearPlace, single)], 0);
  jne(single, T_NEAR);
  emit_results(body, Taken::both);
  jmp(done, T_NEAR);
  L(single);
  emit_results(body, Taken::newer);
  L(done);
  add(rsi, static_cast<int>(sizeof(LinearPlace)));
  dec(rdx);
  jnz(result, T_NEAR);
}

void LinearKernel::emit_gradient(Body& body) {
  const auto shift = [this] {
    for (int v = 0; v < vectors(); ++v) {
      vmovaps(older(v), newer(v));
      vpxord(newer(v), newer(v), newer(v));
    }
  };
  Xbyak::Label place, pass, passed, make, made, single, added, done;
  align(16);
  L(place);
  mov(ecx, dword[rsi + offsetof(LinearPlace, moves)]);
  sub(ecx, dword[rsi + offsetof(LinearPlace, made)]);
  L(pass);
  dec(ecx);
  js(passed, T_NEAR);
  shift();
  jmp(pass, T_NEAR);
  L(passed);
  mov(ecx, dword[rsi + offsetof(LinearPlace, made)]);
  L(make);
  dec(ecx);
  js(made, T_NEAR);
  emit_results(body, Taken::older_sum);
  shift();
  jmp(make, T_NEAR);
  L(made);
  dec(rdx);
  jz(done, T_NEAR);
  cmp(dword[rsi + offsetof(LinearPlace, single)], 0);
  jne(single, T_NEAR);
  emit_additions(false);
  jmp(added, T_NEAR);
  L(single);
  emit_additions(true);
  L(added);
  emit_next_source();
  add(rsi, static_cast<int>(sizeof(LinearPlace)));
  jmp(place, T_NEAR);
  L(done);
}

void LinearKernel::emit_start() {
  mov(rax, ptr[rdi + offsetof(LinearCall, rows)]);
  for (size_t r = 0; r < s_.rows.count; ++r) mov(row_register(r), ptr[rax + 8 * static_cast<int>(r)]);
  emit_addresses(offsetof(LinearCall, in), offsetof(LinearCall, out));
  mov(rax, ptr[rdi + offsetof(LinearCall, weights)]);
  for (int r = 0; s_.rows.weighted && r < moment().getIdx(); ++r) vbroadcastss(Xbyak::Zmm(r), ptr[rax + 4 * r]);
  mov(rsi, ptr[rdi + offsetof(LinearCall, places)]);
  mov(rdx, ptr[rdi + offsetof(LinearCall, count)]);
  for (int v = 0; v < vectors(); ++v)
    for (const Xbyak::Zmm& sum : {older(v), newer(v)}) vpxord(sum, sum, sum);
}

void LinearKernel::emit_next_source() {
  for (size_t r = 0; r < s_.rows.count; ++r) advance(row_register(r), s_.source_bytes);
}

/// Past places that no result takes of.
void LinearKernel::emit_skip() {
  movsxd(rax, dword[rsi + offsetof(LinearPlace, skipped)]);
  imul(rax, rax, static_cast<int>(s_.source_bytes));
  for (size_t r = 0; r < s_.rows.count; ++r) add(row_register(r), rax);
}

/// A place's source to what it takes from.
void LinearKernel::emit_additions(bool single) {
  for (int v = 0; v < vectors(); ++v) {
    emit_source(sum(), v);
    if (single) {
      vaddps(newer(v), newer(v), sum());
    } else {
      vfmadd231ps(older(v), sum(), ptr_b[rsi + offsetof(LinearPlace, older)]);
      vfmadd231ps(newer(v), sum(), ptr_b[rsi + offsetof(LinearPlace, newer)]);
    }
  }
}

void LinearKernel::emit_results(Body& body, Taken taken) {
  for (int v = 0; v < vectors(); ++v) body.emit(hooks(v, taken));
  emit_next_turn();
}

BodyHooks LinearKernel::hooks(int vector, Taken taken) {
  BodyHooks hooks;
  hooks.skeleton = [this, vector, taken](Xmm dst) {
    if (taken != Taken::both) return vmovaps(dst, taken == Taken::newer ? newer(vector) : older(vector));
    vmulps(dst, older(vector), ptr_b[rsi + offsetof(LinearPlace, older)]);
    vfmadd231ps(dst, newer(vector), ptr_b[rsi + offsetof(LinearPlace, newer)]);
  };
  hooks.load = [this, vector](Xmm dst, int k) { load_operand(dst, k, vector); };
  hooks.store = [this, vector](Xmm value, const Lane& lane) { store_operand(value, lane, vector, s_.streaming); };
  return hooks;
}

}  // namespace partita::jit
