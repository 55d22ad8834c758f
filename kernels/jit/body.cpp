// SPDX-License-Identifier: Apache-2.0
// Register allocation for straight-line code: the value that is needed last gives way (Belady's rule).
#include "kernels/jit/body.hpp"

#include <algorithm>
#include <array>

#include "src/base/check.hpp"

namespace partita::jit {
namespace {

/// An operation's operands and its result.
constexpr int kLeastRegisters = 4;

std::array<uint16_t, 3> operands_of(const Lane& lane) { return {lane.a, lane.b, lane.c}; }

/// Moves stores that stand before a load behind the last load; returns the code with operands renumbered.
std::vector<Lane> loads_first(const std::vector<Lane>& code) {
  size_t last_load = 0;
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].op == LaneOp::load) last_load = i;
  std::vector<size_t> order;
  std::vector<size_t> late;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].op == LaneOp::store && i < last_load)
      late.push_back(i);
    else
      order.push_back(i);
    if (i == last_load) order.insert(order.end(), late.begin(), late.end());
  }
  std::vector<uint16_t> place(code.size());
  for (size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<uint16_t>(k);
  std::vector<Lane> sorted;
  for (size_t i : order) {
    Lane lane = code[i];
    lane.a = place[lane.a];
    lane.b = place[lane.b];
    lane.c = place[lane.c];
    sorted.push_back(lane);
  }
  return sorted;
}

}  // namespace

/// What is where at one point of the walk.
struct Body::State {
  std::vector<Place> place;
  std::vector<int> value_in;  // by register; -1: free
  std::vector<int> held;      // values the current operation reads
  bool emitting = false;
  int slots = 0;
  bool spilled = false;
};

Body::Body(Emitter& emitter, const Lanes& lanes, int first_register, int end_register, const Xbyak::RegExp& spill)
    : e_(emitter),
      code_(loads_first(lanes.code)),
      uses_(code_.size()),
      first_(first_register),
      end_(end_register),
      spill_(spill) {
  // Backwards, so that what only dead operations read is dead as well.
  for (size_t i = code_.size(); i-- > 0;) {
    if (code_[i].op != LaneOp::store && uses_[i].empty()) continue;
    for (int k = 0; k < lane_operands(code_[i].op); ++k)
      uses_[operands_of(code_[i])[static_cast<size_t>(k)]].push_back(i);
  }
  for (auto& uses : uses_) std::reverse(uses.begin(), uses.end());
  pinned_.assign(code_.size(), -1);
  // Constants first: keep them in registers if everything else still fits.
  int next = end_;
  for (size_t i = 0; i < code_.size(); ++i)
    if (code_[i].op == LaneOp::constant && !uses_[i].empty()) pinned_[i] = --next;
  const int all = end_;
  bool fits = next - first_ >= kLeastRegisters;
  if (fits) {
    end_ = next;
    State trial;
    walk(trial, nullptr);
    fits = !trial.spilled;
  }
  if (!fits) {
    end_ = all;
    pinned_.assign(code_.size(), -1);
    State trial;
    walk(trial, nullptr);
    slots_ = trial.slots;
  }
}

void Body::emit_constants() {
  for (size_t i = 0; i < code_.size(); ++i)
    if (pinned_[i] >= 0) e_.broadcast_bits(e_.vec(pinned_[i]), code_[i].imm);
}

void Body::emit(const BodyHooks& hooks) {
  State state;
  state.emitting = true;
  walk(state, &hooks);
}

void Body::walk(State& s, const BodyHooks* hooks) const {
  s.place.assign(code_.size(), {});
  s.value_in.assign(static_cast<size_t>(end_), -1);
  for (size_t i = 0; i < code_.size(); ++i) {
    const Lane& lane = code_[i];
    const bool stores = lane.op == LaneOp::store;
    if (lane.op == LaneOp::constant || (!stores && uses_[i].empty())) continue;  // constants come when they are read
    s.held.clear();
    Xbyak::Xmm in[3] = {e_.vec(0), e_.vec(0), e_.vec(0)};
    for (int k = 0; k < lane_operands(lane.op); ++k) {
      const int value = operands_of(lane)[static_cast<size_t>(k)];
      in[k] = operand(s, value, i);
      s.held.push_back(value);
    }
    // What is read for the last time here leaves its register to the result.
    for (int value : s.held) {
      Place& p = s.place[static_cast<size_t>(value)];
      if (p.reg < 0 || uses_[static_cast<size_t>(value)].back() != i) continue;
      s.value_in[static_cast<size_t>(p.reg)] = -1;
      p.reg = -1;
    }
    if (stores) {
      if (s.emitting) hooks->store(in[0], lane);
      continue;
    }
    const int reg = take_register(s, i);
    s.place[i].reg = reg;
    s.value_in[static_cast<size_t>(reg)] = static_cast<int>(i);
    if (!s.emitting) continue;
    const Xbyak::Xmm dst = e_.vec(reg);
    if (lane.op == LaneOp::load)
      hooks->load(dst, lane.imm);
    else if (lane.op == LaneOp::skeleton)
      hooks->skeleton(dst);
    else if (lane.op == LaneOp::index)
      hooks->index(dst, lane.imm);
    else
      e_.compute(lane, dst, in[0], in[1], in[2]);
  }
}

Xbyak::Xmm Body::operand(State& s, int value, size_t at) const {
  if (pinned_[static_cast<size_t>(value)] >= 0) return e_.vec(pinned_[static_cast<size_t>(value)]);
  Place& p = s.place[static_cast<size_t>(value)];
  if (p.reg < 0) {
    const int reg = take_register(s, at);
    p.reg = reg;
    s.value_in[static_cast<size_t>(reg)] = value;
    if (s.emitting) {
      if (is_constant(value))
        e_.broadcast_bits(e_.vec(reg), code_[static_cast<size_t>(value)].imm);
      else
        e_.vmovups(e_.vec(reg), e_.ptr[spill_ + p.slot * 64]);
    }
  }
  return e_.vec(p.reg);
}

int Body::take_register(State& s, size_t at) const {
  int victim = -1;
  size_t furthest = 0;
  for (int r = first_; r < end_; ++r) {
    const int value = s.value_in[static_cast<size_t>(r)];
    if (value < 0) return r;
    if (std::find(s.held.begin(), s.held.end(), value) != s.held.end()) continue;
    const auto& uses = uses_[static_cast<size_t>(value)];
    const auto next = std::lower_bound(uses.begin(), uses.end(), at);
    const size_t distance = next == uses.end() ? SIZE_MAX : *next;
    if (victim < 0 || distance > furthest) {
      victim = r;
      furthest = distance;
    }
  }
  PT_ASSERT(victim >= 0);
  const int value = s.value_in[static_cast<size_t>(victim)];
  Place& p = s.place[static_cast<size_t>(value)];
  s.spilled = true;
  if (!is_constant(value) && p.slot < 0) {
    p.slot = s.slots++;
    if (s.emitting) e_.vmovups(e_.ptr[spill_ + p.slot * 64], e_.vec(victim));
  }
  p.reg = -1;
  return victim;
}

}  // namespace partita::jit
