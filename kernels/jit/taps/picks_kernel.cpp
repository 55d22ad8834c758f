// SPDX-License-Identifier: Apache-2.0
// Code of rows that are picked.
//   rdi plane, rsi row, rcx turns left, r8 to r11 rows of sources, r12 to r14 and rbx operands, r15 elements that wait
//   of joined rows, rax and rdx for a moment; the stack holds the places of joined results
#include "kernels/jit/taps/picks_kernel.hpp"

#include <algorithm>
#include <bit>
#include <climits>

#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/code/most_used.hpp"
#include "src/base/check.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

/// Vector registers behind those of sources: some for a moment, the rows' weights, what is held; those of the
/// expression.
constexpr int kMoment = Picks::kVectors, kMoments = 4, kWeights = kMoment + kMoments;
constexpr int kHeld = kWeights + static_cast<int>(kMostPicked), kMostHeld = 6, kBody = kHeld + kMostHeld;

/// Nothing where places lie too far from each other.
std::optional<Picks::Taps> taps_of(const std::vector<std::vector<Tap>>& lanes, size_t number) {
  constexpr auto kLanes = static_cast<int32_t>(Picks::kLanes);
  int32_t least = INT32_MAX;
  for (const std::vector<Tap>& taps : lanes) least = std::min(least, taps[number].source);
  Picks::Taps picked{.vector = least / kLanes};
  for (size_t l = 0; l < lanes.size(); ++l) {
    const Tap& tap = lanes[l][number];
    const int32_t place = tap.source - picked.vector * kLanes;
    if (place >= 4 * kLanes) return {};
    if (place >= 2 * kLanes) picked.further = static_cast<uint16_t>(picked.further | 1U << l);
    picked.is_fourth = picked.is_fourth || place >= 3 * kLanes;
    picked.places.push_back(place);
    picked.weights.push_back(std::bit_cast<int32_t>(tap.weight));
  }
  return picked;
}

}  // namespace

std::vector<Tap> split_taps(std::span<const Tap> taps, size_t count) {
  std::vector<Tap> split(taps.begin(), taps.end());
  while (split.size() < count) {
    split.back().weight /= 2;
    split.push_back(split.back());
  }
  return split;
}

std::optional<std::vector<Picks>> picks_of(const AxisMap& map) {
  const auto most = static_cast<size_t>(map.most_taps());
  if (most > kMostPicked) return {};
  std::vector<Picks> list;
  for (int64_t first = 0; first < map.to(); first += static_cast<int64_t>(Picks::kLanes)) {
    std::vector<std::vector<Tap>> lanes;
    Picks picks{.first = INT_MAX};
    for (int64_t l = 0; l < static_cast<int64_t>(Picks::kLanes); ++l) {
      const std::span<const Tap> taps = map.taps(std::min(first + l, map.to() - 1));
      if (taps.empty()) return {};
      lanes.push_back(split_taps(taps, most));
      picks.first = std::min(picks.first, taps.front().source / static_cast<int>(Picks::kLanes));
      picks.last = std::max(picks.last, taps.back().source / static_cast<int>(Picks::kLanes));
    }
    if (picks.last - picks.first >= Picks::kVectors || (!list.empty() && picks.first < list.back().first)) return {};
    for (size_t k = 0; k < most; ++k) {
      std::optional<Picks::Taps> taps = taps_of(lanes, k);
      if (!taps) return {};
      picks.taps.push_back(*std::move(taps));
    }
    list.push_back(std::move(picks));
  }
  return list;
}

PicksKernel::PicksKernel(const Lanes& back, const PicksShape& shape)
    : OperandCode(shape.in, shape.out, shape.results), s_(shape) {
  PT_ASSERT(s_.out.size() <= kMostOutputs && s_.results <= kMostResults);
  const bool joins = s_.stores == PicksShape::Stores::joined;
  const int end = value_registers() - (joins ? JoinedStores::registers(*this, s_.out.size()) : 0);
  const int spill_at = aligned(joins ? static_cast<int>(sizeof(JoinedPlace) * s_.out.size()) : 0);
  Body body(*this, back, {kBody, end, rsp + spill_at}, [this](int k) { return repeats(k); });
  if (joins) {
    std::vector<Dtype> types;
    for (const TurnOperand& o : s_.out) types.push_back(o.dtype);
    joined_.emplace(static_cast<Emitter&>(*this), types, end, r15d, rsp);
  }
  choose_held();
  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, spill_at + body.spill_slots() * 64, [&] {
    emit_start();
    body.emit_constants();
    body.emit_row_values(hooks(0));
    Xbyak::Label turn;
    align(16);
    L(turn);
    emit_turn(body);
    dec(rcx);
    jnz(turn, T_NEAR);
    if (joined_) joined_->emit_finish();
  });
  emit_constants();
  if (joined_) joined_->emit_tables();
  entry_ = reinterpret_cast<void (*)(const PicksCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

/// What the most vectors read: scales that are whole numbers have few different patterns.
void PicksKernel::choose_held() {
  std::vector<Picks::Numbers> reads;
  for (const Picks& picks : s_.picks)
    for (const Picks::Taps& taps : picks.taps) {
      reads.push_back(taps.places);
      if (s_.weighted) reads.push_back(taps.weights);
    }
  for (int number = kHeld; Picks::Numbers & numbers : most_used(reads, kMostHeld)) held_[std::move(numbers)] = number++;
}

void PicksKernel::emit_start() {
  emit_addresses(offsetof(PicksCall, in), offsetof(PicksCall, out));
  mov(rsi, ptr[rdi + offsetof(PicksCall, rows)]);
  mov(rcx, ptr[rdi + offsetof(PicksCall, count)]);
  for (const auto& [numbers, number] : held_) vmovups(Zmm(number), pattern(numbers));
  if (const auto rest = static_cast<int>(s_.places % lanes()); rest > 0) hold_mask(0, rest);
  for (int v = 0; v < Picks::kVectors; ++v) vpxord(source(v), source(v), source(v));
  if (joined_) {
    mov(rax, ptr[rdi + offsetof(PicksCall, joined)]);
    for (int k = 0; k < 3 * static_cast<int>(s_.out.size()); ++k) {
      mov(rdx, ptr[rax + 8 * k]);
      mov(ptr[rsp + 8 * k], rdx);
    }
    mov(r15, ptr[rdi + offsetof(PicksCall, pending)]);
    joined_->emit_start();
  }
  mov(rdi, ptr[rdi + offsetof(PicksCall, source)]);
}

void PicksKernel::emit_turn(Body& body) {
  const int of_row = static_cast<int>(ceil_div(s_.places, lanes()));
  int read = -1, row = -1;
  for (size_t v = 0; v < s_.picks.size(); ++v) {
    for (read = std::max(read, s_.picks[v].first - 1); read < s_.picks[v].last;) {
      ++read;
      if (read / of_row != row) emit_row_start(row = read / of_row);
      emit_source(read, read % of_row);
    }
    body.emit(hooks(v));
  }
  add(rsi, static_cast<int>(s_.together * static_cast<int64_t>(sizeof(PickedRow))));
  emit_next_turn();
  if (joined_) joined_->emit_row_end(s_.results);
}

/// Addresses and weights of the sources of the turn's row `row`.
void PicksKernel::emit_row_start(int row) {
  const int at = row * static_cast<int>(sizeof(PickedRow));
  for (size_t r = 0; r < s_.rows.count; ++r) {
    const int number = at + static_cast<int>(r * sizeof(int32_t));
    movsxd(row_register(r), dword[rsi + static_cast<int>(offsetof(PickedRow, from)) + number]);
    add(row_register(r), rdi);
    if (s_.rows.weighted)
      vbroadcastss(Zmm(kWeights + static_cast<int>(r)),
                   dword[rsi + static_cast<int>(offsetof(PickedRow, weights)) + number]);
  }
}

/// Vector `vector` of the turn's sources, number `of_row` of its row, folded over some rows.
void PicksKernel::emit_source(int vector, int of_row) {
  const auto count = static_cast<int>(std::min<int64_t>(lanes(), s_.places - int64_t{of_row} * lanes()));
  OperandCode::emit_source(s_.rows, source(vector), of_row, count, kWeights, Zmm(kMoment));
}

/// Uses the last registers for a moment.
void PicksKernel::pick(Zmm to, const Picks::Taps& taps) {
  const auto held = held_.find(taps.places);
  held != held_.end() ? vmovaps(to, Zmm(held->second)) : vmovups(to, pattern(taps.places));
  Zmm places(kMoment + kMoments - 1);
  if (taps.further != 0) {  // the order takes places modulo the length of one or two vectors
    held != held_.end() ? void(places = Zmm(held->second)) : vmovaps(places, to);
    mov(eax, taps.further);
    kmovd(k1, eax);
  }
  vpermi2ps(to, source(taps.vector), source(taps.vector + 1));
  if (taps.further == 0) return;
  if (!taps.is_fourth) return vpermps(to | k1, places, source(taps.vector + 2));
  const Zmm further(kMoment + kMoments - 2);
  vmovaps(further, source(taps.vector + 2));
  vpermt2ps(further, places, source(taps.vector + 3));
  vmovaps(to | k1, further);
}

void PicksKernel::emit_picks(Zmm to, const Picks& picks) {
  for (size_t k = 0; k < picks.taps.size(); ++k) {
    const Picks::Taps& taps = picks.taps[k];
    const Zmm picked = k == 0 && !s_.weighted ? to : Zmm(kMoment + static_cast<int>(k % 2));
    pick(picked, taps);
    if (!s_.weighted) {
      if (k > 0) emit_fold(s_.rows.fold, to, picked);
      continue;
    }
    const auto add = [&](const Xbyak::Operand& weights) {
      k == 0 ? vmulps(to, picked, weights) : vfmadd231ps(to, picked, weights);
    };
    const auto held = held_.find(taps.weights);
    held != held_.end() ? add(Zmm(held->second)) : add(pattern(taps.weights));
  }
}

BodyHooks PicksKernel::hooks(size_t vector) {
  const auto number = static_cast<int>(vector);
  BodyHooks hooks;
  hooks.skeleton = [this, vector](Xmm dst) { emit_picks(Zmm(dst.getIdx()), s_.picks[vector]); };
  hooks.load = [this, number](Xmm dst, int k) { load_operand(dst, k, number); };
  hooks.store = [this, number](Xmm value, const Lane& lane) {
    if (!joined_) return store_operand(value, lane, number, s_.stores == PicksShape::Stores::streaming);
    joined_->emit_store(static_cast<size_t>(lane.imm), value, lane.flag, number, number + 1 == vectors(),
                        count_of(number));
  };
  return hooks;
}

}  // namespace partita::jit
