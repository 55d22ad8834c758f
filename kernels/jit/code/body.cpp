// SPDX-License-Identifier: Apache-2.0
// Register allocation for straight-line code: the value that is needed last gives way (Belady's rule).
#include "kernels/jit/code/body.hpp"

#include <algorithm>
#include <bit>
#include <climits>

#include "src/base/check.hpp"

namespace partita::jit {
namespace {

/// What an operation reads itself costs less than what is moved for it.
constexpr int kReadInPlace = 1, kMoved = 2;
/// With fewer and fewer values in registers for good, traffic falls and then rises; it is trusted to after so many.
constexpr int kMostInVain = 2;

/// Of numbers only four lanes matter, which take less time. Other operations are as fast in all lanes, or need them.
bool takes_four_lanes(const Lane& lane) {
  using enum LaneOp;
  return lane.number && (lane.op == div || lane.op == sqrt);
}

/// Made for each vector anew, whatever it reads.
bool moves_on(LaneOp op) {
  using enum LaneOp;
  return op == store || op == skeleton || op == index || op == number || op == four_bits;
}

Xbyak::Xmm four_lanes(const Xbyak::Xmm& v) { return Xbyak::Xmm(v.getIdx()); }

/// AVX-512: comparing again for a select takes less than moving a mask from a vector register.
constexpr int kCompared = 3;

}  // namespace

/// What is where at one point of the walk.
struct Body::State {
  std::vector<Place> place;
  std::vector<int> value_in;  // by register, where it is not free
  std::vector<size_t> next;   // by register: where its value is read next
  uint32_t free = 0;          // registers without a value, by bits
  std::vector<int> held;      // values the current operation reads
  std::vector<size_t> used;   // of each value: uses that lie behind
  bool emitting = false;
  int slots = 0;
  int traffic = 0;       ///< stores to slots, what is read from there, and constants that are read or made anew
  int enough = INT_MAX;  ///< traffic that ends the walk of what does not fit
  bool spilled = false;

  void put(int value, int reg) {
    place[static_cast<size_t>(value)].reg = reg;
    value_in[static_cast<size_t>(reg)] = value;
    free &= ~(1U << reg);
  }
  /// The value leaves its register.
  void take(int value) {
    int& reg = place[static_cast<size_t>(value)].reg;
    free |= 1U << reg;
    reg = -1;
  }
};

Body::Body(Emitter& emitter, const Lanes& lanes, const BodyRoom& room, const std::function<bool(int)>& repeats)
    : e_(emitter),
      code_(
          conditions_beside_selects(lanes.in_order ? lanes : loads_first(lanes), emitter.wide() ? kCompared : 1).code),
      first_(room.first),
      room_end_(room.end),
      end_(room.end),
      spill_(room.spill) {
  find_uses();
  find_row_values(repeats);
  // What elements read most often gets a register for good, as long as everything else still fits.
  std::vector<int> wanted;
  for (size_t i = 0; i < code_.size(); ++i)
    if (for_elements_[i]) wanted.push_back(static_cast<int>(i));
  std::stable_sort(wanted.begin(), wanted.end(), [&](int a, int b) { return uses(a).size() > uses(b).size(); });
  // Where nothing does, most is gained by what moves least between registers and memory.
  std::vector<int> best;
  int least = INT_MAX;
  for (int in_vain = 0; in_vain < kMostInVain; wanted.resize(wanted.size() * 3 / 4)) {
    const int traffic = pin(wanted, least);
    if (fits_ = traffic == 0; fits_) return;
    if (traffic < least) {
      least = traffic;
      best = wanted;
      in_vain = 0;
    } else if (least < INT_MAX) {
      ++in_vain;
    }
    if (wanted.empty()) break;
  }
  pin(best, INT_MAX);
}

void Body::find_uses() {
  std::vector<size_t> count(code_.size(), 0);
  const auto is_dead = [&](size_t i) { return code_[i].op != LaneOp::store && count[i] == 0; };
  const auto each_operand = [&](size_t i, auto&& use) {
    for (int k = 0; k < operands_read(code_[i]); ++k) use(operands_of(code_[i])[static_cast<size_t>(k)]);
  };
  // Backwards, so that what only dead operations read is dead as well.
  for (size_t i = code_.size(); i-- > 0;)
    if (!is_dead(i)) each_operand(i, [&](uint16_t value) { ++count[value]; });
  first_use_.assign(1, 0);
  for (size_t reads : count) first_use_.push_back(first_use_.back() + reads);
  uses_.resize(first_use_.back());
  std::vector<size_t> next = first_use_;
  for (size_t i = 0; i < code_.size(); ++i)
    if (!is_dead(i)) each_operand(i, [&](uint16_t value) { uses_[next[value]++] = i; });
}

void Body::find_row_values(const std::function<bool(int)>& repeats) {
  of_row_.assign(code_.size(), false);
  for (size_t i = 0; i < code_.size(); ++i) {
    const Lane& lane = code_[i];
    if (moves_on(lane.op)) continue;
    bool same = lane.op != LaneOp::load || repeats(lane.imm);
    for (int k = 0; k < lane_operands(lane.op); ++k) same = same && of_row_[operands_of(lane)[static_cast<size_t>(k)]];
    of_row_[i] = same;
  }
  for_elements_.assign(code_.size(), false);
  for (size_t i = 0; i < code_.size(); ++i)
    for (size_t use : uses(static_cast<int>(i))) for_elements_[i] = for_elements_[i] || (of_row_[i] && !of_row_[use]);
}

bool Body::is_condition(size_t i) const {
  return e_.wide() && compares(code_[i].op) && i + 1 < code_.size() && code_[i + 1].op == LaneOp::select &&
         code_[i + 1].a == i && uses(static_cast<int>(i)).size() == 1 && of_row_[i] == of_row_[i + 1];
}

/// Gives `values` registers at the end. Returns 0 where elements then need no slots, else how often they go to memory;
/// the count ends at `enough`.
int Body::pin(const std::vector<int>& values, int enough) {
  end_ = room_end_;
  pinned_.assign(code_.size(), -1);
  home_.assign(code_.size(), -1);
  const int left = end_ - static_cast<int>(values.size());
  if (left - first_ < kLeastRegisters) return INT_MAX;
  int next = end_;
  for (int value : values) pinned_[static_cast<size_t>(value)] = --next;
  homes_ = 0;
  for (size_t i = 0; i < code_.size(); ++i)
    if (for_elements_[i] && pinned_[i] < 0 && !is_constant(static_cast<int>(i))) home_[i] = homes_++;
  end_ = next;
  State row, element;
  element.enough = enough;
  walk(row, Part::row, nullptr);
  walk(element, Part::element, nullptr);
  slots_ = std::max(row.slots, element.slots);
  return element.spilled ? element.traffic : 0;
}

void Body::emit_constants() {
  if (std::ranges::any_of(code_, [](const Lane& lane) { return lane.op == LaneOp::unpack; })) e_.prepare_unpack();
  for (size_t i = 0; i < code_.size(); ++i)
    if (pinned_[i] >= 0 && is_constant(static_cast<int>(i))) e_.broadcast_bits(e_.vec(pinned_[i]), code_[i].imm);
}

void Body::emit_row_values(const BodyHooks& hooks) {
  State state;
  state.emitting = true;
  walk(state, Part::row, &hooks);
}

void Body::emit(const BodyHooks& hooks) {
  State state;
  state.emitting = true;
  walk(state, Part::element, &hooks);
}

void Body::walk(State& s, Part part, const BodyHooks* hooks) const {
  s.place.assign(code_.size(), {});
  s.used.assign(code_.size(), 0);
  s.value_in.assign(static_cast<size_t>(end_), -1);
  s.next.assign(static_cast<size_t>(end_), 0);
  s.free = static_cast<uint32_t>((uint64_t{1} << end_) - (uint64_t{1} << first_));
  s.slots = homes_;
  if (part == Part::element)
    for (size_t i = 0; i < code_.size(); ++i) s.place[i].slot = home_[i];
  for (size_t i = 0; i < code_.size() && !(s.spilled && s.traffic >= s.enough); ++i) {
    const Lane& lane = code_[i];
    const auto self = static_cast<int>(i);
    const bool stores = lane.op == LaneOp::store;
    // Constants come when they are read.
    if (lane.op == LaneOp::constant || (!stores && uses(self).empty()) || of_row_[i] != (part == Part::row)) continue;
    s.held.clear();
    Xbyak::Xmm in[3] = {e_.vec(0), e_.vec(0), e_.vec(0)};
    const bool after_condition = i > 0 && is_condition(i - 1);
    const int in_memory = from_memory(s, i);
    for (int k = after_condition ? 1 : 0; k < operands_read(lane); ++k) {
      if (k == in_memory) continue;
      const int value = operands_of(lane)[static_cast<size_t>(k)];
      in[k] = operand(s, value, i);
      s.held.push_back(value);
    }
    if (in_memory >= 0) s.traffic += kReadInPlace;
    // What is read for the last time here leaves its register to the result.
    for (int value : s.held) {
      if (s.place[static_cast<size_t>(value)].reg >= 0 && uses(value).back() == i) s.take(value);
    }
    if (stores) {
      if (s.emitting) hooks->store(in[0], lane);
      continue;
    }
    if (is_condition(i)) {
      if (s.emitting) e_.compare(lane, in[0], in[1]);
      continue;
    }
    const auto make_in = [&](const Xbyak::Xmm& dst) {
      if (!s.emitting) return;
      if (in_memory < 0) return make(i, dst, in, *hooks);
      e_.compute(lane, dst, in, in_memory, memory(s, operands_of(lane)[static_cast<size_t>(in_memory)]));
    };
    if (pinned_[i] >= 0) {
      make_in(e_.vec(pinned_[i]));
      continue;
    }
    const int reg = take_register(s);
    s.put(self, reg);
    find_next(s, self, i);
    make_in(e_.vec(reg));
    if (home_[i] < 0) continue;
    s.place[i].slot = home_[i];
    if (s.emitting) e_.vmovups(e_.ptr[spill_ + home_[i] * 64], e_.vec(reg));
  }
}

/// A constant, a value of the row, or one that gave way and is not read again.
int Body::from_memory(const State& s, size_t i) const {
  const Lane& lane = code_[i];
  if (takes_four_lanes(lane) || is_condition(i) || (i > 0 && is_condition(i - 1))) return -1;
  for (int k = lane_operands(lane.op) - 1; k >= 0; --k) {
    if (!e_.takes_memory(lane, k)) continue;
    const auto value = operands_of(lane)[static_cast<size_t>(k)];
    if (pinned_[value] >= 0 || s.place[value].reg >= 0) continue;
    const auto reads = std::ranges::count(operands_of(lane), value);
    const bool once = lane_operands(lane.op) == 3 ? reads == 1 : lane.a != lane.b;
    if (once && (is_constant(value) || home_[value] >= 0 || uses(value).back() == i)) return k;
  }
  return -1;
}

Xbyak::Address Body::memory(const State& s, int value) const {
  if (is_constant(value)) return e_.everywhere(code_[static_cast<size_t>(value)].imm);
  return e_.ptr[spill_ + s.place[static_cast<size_t>(value)].slot * 64];
}

void Body::make(size_t i, Xbyak::Xmm dst, const Xbyak::Xmm (&in)[3], const BodyHooks& hooks) const {
  const Lane& lane = code_[i];
  if (lane.op == LaneOp::load)
    hooks.load(dst, lane.imm);
  else if (lane.op == LaneOp::skeleton)
    hooks.skeleton(dst);
  else if (lane.op == LaneOp::index)
    hooks.index(dst, lane.imm);
  else if (lane.op == LaneOp::number)
    hooks.number(dst, lane.imm);
  else if (lane.op == LaneOp::four_bits)
    hooks.four_bits(dst, in[0], lane.imm);
  else if (selects_or_zero(lane)) {
    if (i == 0 || !is_condition(i - 1)) e_.take_condition(in[0]);
    e_.select_or_zero(dst, in[1]);
  } else if (i > 0 && is_condition(i - 1))
    e_.select(dst, in[1], in[2]);
  else if (takes_four_lanes(lane))
    e_.compute(lane, four_lanes(dst), four_lanes(in[0]), four_lanes(in[1]), four_lanes(in[2]));
  else
    e_.compute(lane, dst, in[0], in[1], in[2]);
}

Xbyak::Xmm Body::operand(State& s, int value, size_t at) const {
  if (pinned_[static_cast<size_t>(value)] >= 0) return e_.vec(pinned_[static_cast<size_t>(value)]);
  const Place& p = s.place[static_cast<size_t>(value)];
  if (p.reg < 0) {
    const int reg = take_register(s);
    s.put(value, reg);
    s.traffic += kMoved;
    if (s.emitting) {
      if (is_constant(value))
        e_.broadcast_bits(e_.vec(reg), code_[static_cast<size_t>(value)].imm);
      else
        e_.vmovups(e_.vec(reg), e_.ptr[spill_ + p.slot * 64]);
    }
  }
  find_next(s, value, at);
  return e_.vec(p.reg);
}

/// Of a value in a register: where it is read behind `at`.
void Body::find_next(State& s, int value, size_t at) const {
  const std::span<const size_t> uses = this->uses(value);
  size_t& used = s.used[static_cast<size_t>(value)];
  while (used < uses.size() && uses[used] <= at) ++used;
  const int reg = s.place[static_cast<size_t>(value)].reg;
  s.next[static_cast<size_t>(reg)] = used == uses.size() ? SIZE_MAX : uses[used];
}

int Body::take_register(State& s) const {
  if (s.free != 0) return std::countr_zero(s.free);
  int victim = -1;
  size_t furthest = 0;
  for (int r = first_; r < end_; ++r) {
    if (std::ranges::find(s.held, s.value_in[static_cast<size_t>(r)]) != s.held.end()) continue;
    const size_t distance = s.next[static_cast<size_t>(r)];
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
    s.traffic += kMoved;
    if (s.emitting) e_.vmovups(e_.ptr[spill_ + p.slot * 64], e_.vec(victim));
  }
  s.take(value);
  return victim;
}

}  // namespace partita::jit
