// SPDX-License-Identifier: Apache-2.0
// Code of rows that are picked.
//   rdi call, rsi row, rcx rows left, r8 plane, r9 and r10 rows of sources, r11 to r14 and rbx operands, r15 elements
//   that wait of joined rows, rax and rdx for a moment; the stack holds the places of joined results
#include "kernels/jit/resample/picks_kernel.hpp"

#include <algorithm>
#include <bit>

#include "kernels/jit/code/frame.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr std::array kOperandRegisters = {11, 12, 13, 14, 3};
Reg64 operand_register(size_t k) { return Reg64(kOperandRegisters[k]); }

/// Vector registers: two of sources, two for a moment, the rows' weights, what is held; those of the expression.
constexpr int kSources = 0, kMoment = 2, kWeights = 4, kHeld = 6, kMostHeld = 6, kBody = kHeld + kMostHeld;
constexpr int kFetched = 1024;  ///< bytes ahead of what is read

}  // namespace

std::optional<std::vector<Picks>> picks_of(const AxisMap& map) {
  constexpr auto kLanes = static_cast<int64_t>(Picks::kLanes);
  std::vector<Picks> list;
  int before = 0;
  for (int64_t first = 0; first < map.to(); first += kLanes) {
    const int64_t end = std::min(first + kLanes, map.to());
    int32_t least = INT32_MAX, most = 0;
    for (int64_t i = first; i < end; ++i) {
      if (map.taps(i).empty() || map.taps(i).size() > 2) return {};
      least = std::min(least, map.taps(i).front().source);
      most = std::max(most, map.taps(i).back().source);
    }
    Picks picks{.vector = static_cast<int>(least / kLanes), .places = {}, .weights = {}};
    if (most / kLanes > picks.vector + 1 || picks.vector < before) return {};
    before = picks.vector;
    for (int64_t i = first; i < first + kLanes; ++i) {
      const std::span<const Tap> taps = map.taps(std::min(i, map.to() - 1));
      const bool single = taps.size() == 1;
      for (size_t k = 0; k < 2; ++k) {
        const Tap& tap = single ? taps[0] : taps[k];
        picks.places[k].push_back(tap.source - picks.vector * static_cast<int32_t>(kLanes));
        picks.weights[k].push_back(std::bit_cast<int32_t>(single ? tap.weight / 2 : tap.weight));
      }
    }
    list.push_back(std::move(picks));
  }
  return list;
}

PicksKernel::PicksKernel(const Lanes& back, const PicksShape& shape) : Emitter(Isa::avx512), s_(shape) {
  PT_ASSERT(operands() <= kMostOperands && s_.results <= kMostResults);
  const bool joins = s_.stores == PicksShape::Stores::joined;
  const int end = value_registers() - (joins ? JoinedStores::registers(*this, s_.out.size()) : 0);
  const int spill_at = aligned(joins ? static_cast<int>(sizeof(JoinedPlace) * s_.out.size()) : 0);
  Body body(*this, back, {kBody, end, rsp + spill_at}, [&](int k) {
    const PickOperand& o = s_.in[static_cast<size_t>(k)];
    return !o.steps && o.row_bytes == 0;
  });
  if (joins) {
    std::vector<Dtype> types;
    for (const PickOperand& o : s_.out) types.push_back(o.dtype);
    joined_.emplace(static_cast<Emitter&>(*this), types, end, r15d, rsp);
  }
  choose_held();
  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, spill_at + body.spill_slots() * 64, [&] {
    emit_start();
    body.emit_constants();
    body.emit_row_values(hooks(0));
    Xbyak::Label row;
    align(16);
    L(row);
    emit_row(body);
    dec(rcx);
    jnz(row, T_NEAR);
    if (joined_) joined_->emit_finish();
    if (s_.stores != PicksShape::Stores::plain) sfence();
  });
  emit_constants();
  if (joined_) joined_->emit_tables();
  entry_ = reinterpret_cast<void (*)(const PicksCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

/// What the most vectors read: scales that are whole numbers have few different patterns.
void PicksKernel::choose_held() {
  std::map<Picks::Numbers, int> uses;
  for (const Picks& p : s_.picks)
    for (size_t k = 0; k < (s_.two_places ? 2 : 1); ++k)
      for (const Picks::Numbers* numbers : {&p.places[k], &p.weights[k]})
        if (numbers == &p.places[k] || s_.two_places) ++uses[*numbers];
  std::vector<std::pair<int, const Picks::Numbers*>> order;
  for (const auto& [numbers, count] : uses) order.emplace_back(-count, &numbers);
  std::ranges::stable_sort(order, {}, &std::pair<int, const Picks::Numbers*>::first);
  for (size_t k = 0; k < std::min<size_t>(order.size(), kMostHeld); ++k)
    held_[*order[k].second] = kHeld + static_cast<int>(k);
}

void PicksKernel::emit_start() {
  const auto read = [&](const Reg64& to, size_t list, size_t k) {
    mov(rax, ptr[rdi + static_cast<int>(list)]);
    mov(to, ptr[rax + 8 * static_cast<int>(k)]);
  };
  for (size_t k = 0; k < s_.in.size(); ++k) read(operand_register(k), offsetof(PicksCall, in), k);
  for (size_t k = 0; k < s_.out.size(); ++k) read(operand_register(s_.in.size() + k), offsetof(PicksCall, out), k);
  mov(r8, ptr[rdi + offsetof(PicksCall, source)]);
  mov(rsi, ptr[rdi + offsetof(PicksCall, rows)]);
  mov(rcx, ptr[rdi + offsetof(PicksCall, count)]);
  for (const auto& [numbers, number] : held_) vmovups(Zmm(number), pattern(numbers));
  for (int v : {kSources, kSources + 1}) vpxord(Zmm(v), Zmm(v), Zmm(v));
  if (!joined_) return;
  for (size_t k = 0; k < 3 * s_.out.size(); ++k) {
    read(rdx, offsetof(PicksCall, joined), k);
    mov(ptr[rsp + 8 * static_cast<int>(k)], rdx);
  }
  mov(r15, ptr[rdi + offsetof(PicksCall, pending)]);
  joined_->emit_start();
}

void PicksKernel::emit_row(Body& body) {
  const auto source = [&](const Reg64& to, size_t at) {
    movsxd(to, dword[rsi + static_cast<int>(at)]);
    add(to, r8);
  };
  source(r9, offsetof(PickedRow, first));
  if (s_.two_rows) {
    source(r10, offsetof(PickedRow, second));
    vbroadcastss(Zmm(kWeights), dword[rsi + offsetof(PickedRow, first_weight)]);
    vbroadcastss(Zmm(kWeights + 1), dword[rsi + offsetof(PickedRow, second_weight)]);
  }
  const auto vectors = static_cast<int>(ceil_div(s_.places, static_cast<int64_t>(lanes())));
  int read = -1;
  for (size_t v = 0; v < s_.picks.size(); ++v) {
    const int last = std::min(s_.picks[v].vector + 1, vectors - 1);
    for (read = std::max(read, s_.picks[v].vector - 1); read < last;) emit_source(++read);
    body.emit(hooks(v));
  }
  add(rsi, static_cast<int>(sizeof(PickedRow)));
  for (size_t k = 0; k < operands(); ++k) advance(operand_register(k), operand(k).row_bytes);
  if (joined_) joined_->emit_row_end(s_.results);
}

/// Vector `vector` of the source's row, the sum of two.
void PicksKernel::emit_source(int vector) {
  const Zmm to(kSources + vector % 2), second(kMoment);
  const int bytes = lanes() * bits_of(s_.source) / 8, behind = vector * bytes;
  const auto count = static_cast<int>(std::min<int64_t>(lanes(), s_.places - int64_t{vector} * lanes()));
  load(to, s_.source, Walk::next, r9 + behind, count);
  if (!s_.two_rows) return;
  if (s_.stores != PicksShape::Stores::plain && begins_line(behind, bytes)) prefetcht1(ptr[r10 + behind + kFetched]);
  vmulps(to, to, Zmm(kWeights));
  load(second, s_.source, Walk::next, r10 + behind, count);
  vfmadd231ps(to, second, Zmm(kWeights + 1));
}

void PicksKernel::emit_picks(Zmm to, const Picks& picks) {
  const Zmm low(kSources + picks.vector % 2), high(kSources + (picks.vector + 1) % 2);
  const auto pick = [&](const Zmm& picked, const Picks::Numbers& places) {
    const auto held = held_.find(places);
    held != held_.end() ? vmovaps(picked, Zmm(held->second)) : vmovups(picked, pattern(places));
    vpermi2ps(picked, low, high);
  };
  const auto weighted = [&](const auto& compute, const Picks::Numbers& weights) {
    const auto held = held_.find(weights);
    held != held_.end() ? compute(Zmm(held->second)) : compute(pattern(weights));
  };
  if (!s_.two_places) return pick(to, picks.places[0]);
  const Zmm first(kMoment), second(kMoment + 1);
  pick(first, picks.places[0]);
  pick(second, picks.places[1]);
  weighted([&](const Xbyak::Operand& w) { vmulps(to, first, w); }, picks.weights[0]);
  weighted([&](const Xbyak::Operand& w) { vfmadd231ps(to, second, w); }, picks.weights[1]);
}

BodyHooks PicksKernel::hooks(size_t vector) {
  BodyHooks hooks;
  hooks.skeleton = [this, vector](Xmm dst) { emit_picks(Zmm(dst.getIdx()), s_.picks[vector]); };
  hooks.load = [this, vector](Xmm dst, int k) {
    const auto number = static_cast<size_t>(k);
    load(dst, operand(number).dtype, operand(number).steps ? Walk::next : Walk::same, elements(number, vector),
         count_of(vector));
  };
  hooks.store = [this, vector](Xmm value, const Lane& lane) {
    const auto output = static_cast<size_t>(lane.imm);
    const int count = count_of(vector);
    if (joined_) {
      const bool last = vector + 1 == s_.picks.size();
      return joined_->emit_store(output, value, lane.flag, static_cast<int64_t>(vector), last, count);
    }
    store(value, s_.out[output].dtype, lane.flag, elements(s_.in.size() + output, vector), count,
          s_.stores == PicksShape::Stores::streaming && count == lanes());
  };
  return hooks;
}

int PicksKernel::count_of(size_t vector) const {
  return static_cast<int>(std::min<int64_t>(lanes(), s_.results - static_cast<int64_t>(vector) * lanes()));
}

RegExp PicksKernel::elements(size_t k, size_t vector) const {
  const int behind = operand(k).steps ? static_cast<int>(vector) * lanes() * bits_of(operand(k).dtype) / 8 : 0;
  return operand_register(k) + behind;
}

}  // namespace partita::jit
