// SPDX-License-Identifier: Apache-2.0
// Code of a stencil over rows.
//   rdi call, r9 r10 r11 rsi rows that are combined, rdx operand address, rcx element in the row, r8 rows left; the
//   stack holds the operands' addresses and, behind them, spilled values.
#include "kernels/jit/taps/stencil.hpp"

#include <algorithm>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/imm32.hpp"
#include "kernels/transplant.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;

constexpr int kTemporaries = 3;  ///< two vectors of a folded row and what is picked from them
constexpr int kIndices = 2;      ///< AVX-512: which lanes are even, which are odd

}  // namespace

bool StencilShape::is_fresh(int64_t source, int64_t tap) const {
  return source >= sources - fresh_sources && std::ranges::find(fetched, tap) != fetched.end();
}

Fetching StencilShape::fetching_of(int64_t together) const {
  return together == rows.length ? Fetching::of_few_streams(fetched_ahead) : Fetching::of_many_streams(fetched_ahead);
}

int vectors_of_group(int64_t length, int lanes, int64_t most) {
  const int64_t vectors = std::max<int64_t>(1, length / lanes), groups = (vectors + most - 1) / most;
  return static_cast<int>((vectors + groups - 1) / groups);
}

Stencil::Stencil(Isa isa, const Lanes& lanes, const StencilShape& shape)
    : Emitter(isa),
      shape_(shape),
      together_(vectors_together()),
      temporaries_(value_registers() - kTemporaries - (wide() && shape.every_second ? kIndices : 0)),
      sums_(temporaries_ - (together_ > 1 ? together_ : 0)) {
  const RowShape& rows = shape.rows;
  const int spill_at = aligned(static_cast<int>(rows.in.size() + rows.out.size()) * 8);
  Body body(*this, lanes, {0, sums_, rsp + spill_at},
            [&](int operand) { return !rows.in[static_cast<size_t>(operand)].steps; });

  push(rbp);
  mov(rbp, rsp);
  sub(rsp, spill_at + body.spill_slots() * 64);
  int k = 0;
  const auto take_addresses = [&](size_t offset, size_t count) {
    mov(rsi, ptr[rdi + offset]);
    for (size_t i = 0; i < count; ++i, ++k) {
      mov(rax, ptr[rsi + 8 * i]);
      mov(ptr[rsp + 8 * k], rax);
    }
  };
  take_addresses(offsetof(StencilCall, in), rows.in.size());
  take_addresses(offsetof(StencilCall, out), rows.out.size());
  mov(r8, ptr[rdi + offsetof(StencilCall, rows)]);
  mov(rax, ptr[rdi + offsetof(StencilCall, sources)]);
  for (int64_t s = 0; s < shape.sources; ++s) mov(source(s), ptr[rax + static_cast<size_t>(8 * s)]);
  body.emit_constants();
  if (wide() && shape.every_second) {
    vmovups(vec(temporaries_ + kTemporaries), ptr[rip + even_]);
    vmovups(vec(temporaries_ + kTemporaries + 1), ptr[rip + odd_]);
  }

  Xbyak::Label row;
  align(16);
  L(row);
  emit_row(body);
  mov(rax, shape.row_bytes);
  for (int64_t s = 0; s < shape.sources; ++s) add(source(s), rax);
  k = 0;
  for (const auto* side : {&rows.in, &rows.out})
    for (const RowOperand& operand : *side) {
      if (operand.row_bytes != 0) {
        mov(rax, operand.row_bytes);
        add(ptr[rsp + 8 * k], rax);
      }
      ++k;
    }
  dec(r8);
  jnz(row, T_NEAR);

  vzeroupper();
  leave();
  ret();
  emit_constants();
  if (wide() && shape.every_second)
    for (auto [label, first] : {std::pair(&even_, 0u), std::pair(&odd_, 1u)}) {
      align(64);
      L(*label);
      for (unsigned j = 0; j < 16; ++j) dd(2 * j + first);
    }
  entry_ = reinterpret_cast<void (*)(const StencilCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void Stencil::emit_row(Body& body) {
  const int64_t length = shape_.rows.length, whole = length / lanes() * lanes(), group = int64_t{together_} * lanes();
  const int64_t grouped = together_ > 1 ? length / group * group : 0;
  xor_(ecx, ecx);
  body.emit_row_values(hooks_for(lanes()));
  const auto loop = [&](int64_t end, int64_t step, const auto& emit) {
    Xbyak::Label next;
    align(16);
    L(next);
    emit();
    add(rcx, static_cast<uint32_t>(step));
    cmp(rcx, static_cast<uint32_t>(end));
    jl(next, T_NEAR);
  };
  if (grouped > 0)
    loop(grouped, group, [&] {
      combine_together();
      for (int v = 0; v < together_; ++v) body.emit(hooks_for(lanes(), v, true));
    });
  if (whole > grouped) loop(whole, lanes(), [&] { body.emit(hooks_for(lanes())); });
  if (length > whole) body.emit(hooks_for(static_cast<int>(length - whole)));
}

/// Where memory is read at several places, each gives some cache lines in a row.
int Stencil::vectors_together() const {
  constexpr int64_t kMost = 18;
  const bool mostly_near = 2 * shape_.fetched.size() < shape_.taps.size();  // taps that the windows before read, too
  if (!wide() || shape_.every_second || mostly_near) return 1;
  return vectors_of_group(shape_.rows.length, lanes(), kMost);
}

BodyHooks Stencil::hooks_for(int count) { return hooks_for(count, 0, false); }

/// `vector`: of those together, which are `combined` already.
BodyHooks Stencil::hooks_for(int count, int vector, bool combined) {
  const auto place = [this, vector](const RowOperand& o) {
    const int each = element_bytes(o.dtype);
    return o.steps ? rdx + rcx * each + vector * lanes() * each : RegExp(rdx);
  };
  BodyHooks hooks;
  hooks.load = [this, place, count](Xmm dst, int operand) {
    const RowOperand& o = shape_.rows.in[static_cast<size_t>(operand)];
    mov(rdx, ptr[rsp + 8 * operand]);
    load(dst, o.dtype, o.steps ? Walk::next : Walk::same, place(o), count);
  };
  hooks.store = [this, place, count](Xmm value, const Lane& lane) {
    const RowOperand& o = shape_.rows.out[static_cast<size_t>(lane.imm)];
    mov(rdx, ptr[rsp + 8 * (static_cast<int>(shape_.rows.in.size()) + lane.imm)]);
    store(value, o.dtype, lane.flag, place(o), count, shape_.rows.streaming && count == lanes());
  };
  hooks.skeleton = [this, count, vector, combined](Xmm dst) {
    if (shape_.every_second) return combine_pairs(dst);
    combined ? vmovaps(dst, vec(sums_ + vector)) : combine(dst, count);
  };
  return hooks;
}

void Stencil::take(Xmm sum, Xmm part, bool& first) {
  first ? vmovaps(sum, part) : fold_into(sum, part, shape_.fold, lanes());
  first = false;
}

Xbyak::Reg64 Stencil::source(int64_t k) {
  using Xbyak::Operand;
  constexpr Operand::Code kRegisters[kMaxSources] = {Operand::R9, Operand::R10, Operand::R11, Operand::RSI};
  return Xbyak::Reg64(kRegisters[k]);
}

void Stencil::combine(Xmm sum, int count) {
  const int each = element_bytes(shape_.dtype);
  bool first = true;
  for (int64_t s = 0; s < shape_.sources; ++s)
    for (int64_t tap : shape_.taps) combine_tap(sum, source(s) + rcx * each + imm32(tap * each), count, first);
  if (count < lanes()) return;
  for (int64_t s = shape_.sources - shape_.fresh_sources; s < shape_.sources; ++s)
    for (int64_t tap : shape_.fetched)
      fetch_line(source(s) + rcx * each + imm32(tap * each), Fetching::near(shape_.fetched_ahead));
}

/// Tap by tap, of all vectors together.
void Stencil::combine_together() {
  const Fetching fetching = shape_.fetching_of(int64_t{together_} * lanes());
  const int each = element_bytes(shape_.dtype), bytes = lanes() * each;
  bool first = true;
  for (int64_t s = 0; s < shape_.sources; ++s)
    for (int64_t tap : shape_.taps) {
      const RegExp from = source(s) + rcx * each + imm32(tap * each);
      const bool fetched = shape_.is_fresh(s, tap);
      for (int v = 0; v < together_; ++v) {
        bool none = first;
        combine_tap(vec(sums_ + v), from + v * bytes, lanes(), none);
        if (!fetched || v * bytes % kCacheLine != 0) continue;
        fetch_line(from + v * bytes, fetching);
      }
      first = false;
    }
}

void Stencil::combine_tap(Xmm sum, const RegExp& from, int count, bool& first) {
  if (shape_.reads_beyond) count = lanes();
  if (!first && shape_.fold == Fold::sum && shape_.dtype == Dtype::f32 && count == lanes())
    return vaddps(sum, sum, ptr[from]);
  const Xmm part = vec(temporaries_);
  load(first ? sum : part, shape_.dtype, Walk::next, from, count);
  if (!first) fold_into(sum, part, shape_.fold, lanes());
  first = false;
}

/// Taps 2q and 2q + 1 of consecutive results are the even and the odd elements of one stretch of the row.
void Stencil::combine_pairs(Xmm sum) {
  const Xmm low = vec(temporaries_), high = vec(temporaries_ + 1), picked = vec(temporaries_ + 2);
  bool first = true;
  int64_t loaded = -1;
  for (int64_t tap : shape_.taps) {
    const int64_t pair = tap / 2;
    if (pair != loaded) {
      vmovups(low, ptr[r9 + rcx * 8 + static_cast<int>(pair * 8)]);
      vmovups(high, ptr[r9 + rcx * 8 + static_cast<int>(pair * 8 + vector_bytes())]);
    }
    loaded = pair;
    pick_second(picked, low, high, tap % 2 == 1);
    take(sum, picked, first);
  }
}

/// dst = every second lane of a and b.
void Stencil::pick_second(Xmm dst, Xmm a, Xmm b, bool odd) {
  if (wide()) {
    vmovaps(dst, vec(temporaries_ + kTemporaries + (odd ? 1 : 0)));
    return vpermi2ps(dst, a, b);
  }
  vshufps(dst, a, b, odd ? 0xdd : 0x88);
  vpermpd(Ymm(dst.getIdx()), Ymm(dst.getIdx()), 0xd8);
}

std::unique_ptr<const Stencil> make_stencil(Isa isa, const StencilShape& shape, Expr expr, ExprBuilder::Value value,
                                            const Expr& back, const std::vector<int>& back_in) {
  Transplant behind(back.code, expr);
  behind.skeleton = value;
  behind.in_map.assign(back_in.empty() ? 0 : static_cast<size_t>(back_in.back()) + 1, -1);
  for (size_t k = 0; k < back_in.size(); ++k) behind.in_map[static_cast<size_t>(back_in[k])] = static_cast<int>(k);
  for (size_t k = 0; k < shape.rows.out.size(); ++k) behind.out_map.push_back(static_cast<int>(k));
  behind.run();
  Problem types;  // expansion asks for the operands' types alone
  for (const RowOperand& o : shape.rows.in) types.in.push_back({o.dtype, {}, {}, 0});
  for (const RowOperand& o : shape.rows.out) types.out.push_back({o.dtype, {}, {}, 0});
  return std::make_unique<const Stencil>(isa, expanded(expr, types, isa), shape);
}

}  // namespace partita::jit
