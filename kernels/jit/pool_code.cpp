// SPDX-License-Identifier: Apache-2.0
// Frames, streams and the search for maxima.
#include "kernels/jit/pool_code.hpp"

#include <algorithm>

#include "kernels/jit/expand.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr uint8_t kOrdered = 0x07, kNotGreaterEqual = 0x19;

}  // namespace

const void* PoolCode::emit_all(const Problem& problem, int taken,
                               const std::function<void(Body& front, Body& back)>& steps) {
  const auto never = [](int) { return false; };
  const int middle = taken + (wide() && taken <= kMostTaken - kLeastRegisters ? 2 * kLeastRegisters : kLeastRegisters);
  const int spill_at = (static_cast<int>(steps_.size()) * 8 + 63) / 64 * 64;
  Body front(*this, expanded_front(p_.front, problem, isa()), {taken, middle, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, expanded(p_.back, problem, isa()), {middle, value_registers(), rsp + back_at}, never);
  push(rbp);
  mov(rbp, rsp);
  sub(rsp, back_at + back.spill_slots() * 64);
  and_(rsp, -64);
  mov(rax, ptr[rdi]);
  for (size_t k = 0; k < steps_.size(); ++k) {
    mov(rdx, ptr[rax + 8 * static_cast<int>(k)]);
    mov(slot(k), rdx);
  }
  const BodyHooks none;
  front.emit_constants();
  back.emit_constants();
  front.emit_row_values(none);
  back.emit_row_values(none);
  steps(front, back);
  vzeroupper();
  mov(rsp, rbp);
  pop(rbp);
  ret();
  emit_constants();
  return finish();
}

void PoolCode::advance_streams() {
  for (size_t k = 0; k < steps_.size(); ++k) {
    if (steps_[k] == static_cast<int32_t>(steps_[k])) {
      add(slot(k), static_cast<uint32_t>(steps_[k]));
    } else {
      mov(rax, steps_[k]);
      add(slot(k), rax);
    }
  }
}

void PoolCode::emit_gradient(Body& front, const Xmm& gradient, const Load& load) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, operand) - p_.front_in.begin());
    load(dst, p_.in[static_cast<size_t>(operand)], k);
  };
  hooks.store = [&](Xmm value, const Lane& lane) { lane.flag ? vcvtdq2ps(gradient, value) : vmovaps(gradient, value); };
  front.emit(hooks);
}

void PoolCode::fetch(const RegExp& at) { in_turns_ ? fetch_ahead(at) : prefetcht0(ptr[at + kPrefetchFromMemory]); }

/// What comes later is asked for early: loads alone keep too little under way.
void PoolCode::load_elements(const Xmm& dst, const PoolOperand& o, bool repeats, const RegExp& at, int count,
                             bool ahead) {
  if (repeats) return load(dst, o.dtype, Walk::same, at, count);
  if (ahead) fetch(at);
  load(dst, o.dtype, Walk::next, at, count);
}

/// Each step waits for the one before it, so rows are searched by themselves and then compete with each other.
void PoolCode::find_maximum(const Xmm& winner, const Taps& taps, bool started,
                            const std::function<void(int64_t row, int64_t tap)>& load_tap) {
  for (int64_t row = taps.first_row; row < taps.end_row; ++row) {
    const bool apart = wide() && row > taps.first_row;
    const Xmm best = vec(apart ? kRowBest : kBest), named = apart ? vec(kRowWinner) : winner;
    bool first = row == taps.first_row ? !started : apart;
    for (int64_t tap = taps.first; tap < taps.end; ++tap) {
      const auto number = pattern(everywhere(row * p_.g.kernel[2] + tap));
      load_tap(row, tap);
      if (first) {
        vmovaps(best, vec(kTap));
        vmovups(named, number);
      } else {
        compete(best, named, vec(kTap), number);
      }
      first = false;
    }
    if (apart) compete(vec(kBest), winner, best, named);
  }
}

/// The value takes the place of the best where it is greater, or NaN and best is not.
void PoolCode::compete(const Xmm& best, const Xmm& winner, const Xmm& value, const Xbyak::Operand& number) {
  if (wide()) {
    vcmpps(k1, best, value, kNotGreaterEqual);
    vcmpps(k2, best, best, kOrdered);
    kandw(k1, k1, k2);
    vmovaps(best | k1, value);
    return vmovdqa32(winner | k1, number);
  }
  const Xmm wins = scratch(0), ordered = scratch(1);
  vcmpps(wins, best, value, kNotGreaterEqual);
  vcmpps(ordered, best, best, kOrdered);
  vandps(wins, wins, ordered);
  vblendvps(best, best, value, wins);
  vblendvps(winner, winner, number, wins);
}

void PoolCode::add_won(const Xmm& sum, bool first, const Xmm& winner, const Xbyak::Operand& gradient, int64_t tap) {
  if (wide()) {
    vpcmpeqd(k1, winner, pattern(everywhere(tap)));
    return first ? vmovups(sum | k1 | T_z, gradient) : vaddps(sum | k1, sum, gradient);
  }
  const Xmm own = scratch(1);
  vpcmpeqd(own, winner, pattern(everywhere(tap)));
  vandps(first ? sum : own, own, gradient);
  if (!first) vaddps(sum, sum, own);
}

void PoolCode::merge_lanes(const Xmm& to, const Xmm& from, int number, bool alone,
                           const std::function<int64_t(int lane)>& place) {
  if (wide() && number == 0 && !alone) return vmovaps(to, from);
  std::vector<int32_t> places;
  uint8_t here = 0;
  for (int l = 0; l < lanes(); ++l) {
    const auto vector = static_cast<int>(place(l) / lanes()), lane = static_cast<int>(place(l) % lanes());
    if (wide() && number > 0)  // of two vectors: what was put together (first all of vector 0), and this one
      places.push_back(vector == number ? lanes() + lane : number > 1 ? l : lane);
    else
      places.push_back(lane);
    if (vector == number) here = static_cast<uint8_t>(here | 1u << l % 8);
  }
  const Xmm index = scratch(0);
  vmovups(index, pattern(places));
  if (wide()) {
    const Zmm dst(to.getIdx()), order(index.getIdx()), other(from.getIdx());
    return number == 0 ? vpermps(dst, order, other) : vpermt2ps(dst, order, other);
  }
  const Ymm order(index.getIdx()), other(from.getIdx());
  vpermps(number == 0 ? Ymm(to.getIdx()) : other, order, other);
  if (number > 0) vblendps(to, to, from, here);
}

void PoolCode::set_lanes(const Xmm& v, const std::vector<bool>& which, int32_t bits) {
  uint32_t mask = 0;
  for (size_t l = 0; l < which.size(); ++l) mask |= (which[l] ? 1u : 0u) << l;
  if (mask == 0) return;
  if (wide()) {
    mov(eax, mask);
    kmovw(k1, eax);
    return vmovups(v | k1, pattern(everywhere(bits)));
  }
  vblendps(v, v, pattern(everywhere(bits)), static_cast<uint8_t>(mask));
}

}  // namespace partita::jit
