// SPDX-License-Identifier: Apache-2.0
// Operand counts and building of lane programs.
#include "kernels/jit/code/lanes.hpp"

#include <algorithm>
#include <array>

#include "src/base/check.hpp"

namespace partita::jit {

int lane_operands(LaneOp op) {
  switch (op) {
    using enum LaneOp;
    case load:
    case skeleton:
    case constant:
    case index:
    case number:
    case lane_number:
    case table:
    case word_places:
    case bit_places: return 0;
    case four_bits:
    case store:
    case sqrt:
    case round:
    case floor:
    case shl:
    case shr:
    case sra:
    case shr64:
    case to_int:
    case to_float:
    case cast:
    case fraction:
    case inverse:
    case rectified:
    case across:
    case across_quarters:
    case spread: return 1;
    case add:
    case sub:
    case mul:
    case div:
    case max:
    case min:
    case and_:
    case or_:
    case xor_:
    case andnot:
    case gt:
    case ge:
    case eq:
    case unordered:
    case iadd:
    case isub:
    case imul:
    case imax:
    case imin:
    case igt:
    case iadd64:
    case philox:
    case word:
    case scale:
    case lookup:
    case keep:
    case halves:
    case quarters:
    case pack:
    case unpack: return 2;
    case fma:
    case fnma:
    case lookup_in_two:
    case select: return 3;
  }
  return 0;
}

bool compares(LaneOp op) {
  using enum LaneOp;
  return op == gt || op == ge || op == eq || op == unordered || op == igt;
}

namespace {

/// The operations in another order, in which they still read earlier ones; what is left out nobody reads. What is made
/// more than once is read where it was made last.
Lanes in_order_of(const Lanes& lanes, const std::vector<size_t>& order) {
  std::vector<uint16_t> place(lanes.code.size());
  Lanes sorted;
  sorted.in_order = lanes.in_order;
  for (size_t i : order) {
    Lane lane = lanes.code[i];
    lane.a = place[lane.a];
    lane.b = place[lane.b];
    lane.c = place[lane.c];
    place[i] = static_cast<uint16_t>(sorted.code.size());
    sorted.code.push_back(lane);
  }
  if (!order.empty()) sorted.result = place[lanes.result];
  return sorted;
}

}  // namespace

Lanes loads_first(const Lanes& lanes) {
  const std::vector<Lane>& code = lanes.code;
  size_t last_load = 0;
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].op == LaneOp::load || code[i].op == LaneOp::four_bits) last_load = i;
  std::vector<size_t> order;
  std::vector<size_t> late;
  for (size_t i = 0; i < code.size(); ++i) {
    if (i < last_load && code[i].op == LaneOp::store)
      late.push_back(i);
    else
      order.push_back(i);
    if (i == last_load) order.insert(order.end(), late.begin(), late.end());
  }
  return in_order_of(lanes, order);
}

bool only_moves(const Lanes& lanes) {
  return std::ranges::all_of(lanes.code, [](const Lane& lane) {
    using enum LaneOp;
    return lane.op == load || lane.op == store || lane.op == pack || lane.op == unpack || lane.op == word_places;
  });
}

std::vector<int> levels_of(const Lanes& lanes) {
  const std::vector<Lane>& code = lanes.code;
  std::vector<int> level(code.size(), 0);
  for (size_t i = 0; i < code.size(); ++i) {
    const std::array read = operands_of(code[i]);
    for (int k = 0; k < lane_operands(code[i].op); ++k) {
      const auto r = read[static_cast<size_t>(k)];
      if (code[r].op != LaneOp::constant) level[i] = std::max(level[i], level[r] + 1);
    }
  }
  return level;
}

Lanes by_level(const Lanes& lanes) {
  const std::vector<int> level = levels_of(lanes);
  std::vector<size_t> order(lanes.code.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return level[a] < level[b]; });
  return in_order_of(lanes, order);
}

Lanes conditions_beside_selects(const Lanes& lanes, int most_selects) {
  const std::vector<Lane>& code = lanes.code;
  std::vector<int> uses(code.size(), 0), conditions(code.size(), 0);
  const auto is_dead = [&](size_t i) { return code[i].op != LaneOp::store && uses[i] == 0; };
  for (size_t i = code.size(); i-- > 0;) {  // backwards: what only dead operations read is dead as well
    const Lane& lane = code[i];
    if (is_dead(i)) continue;
    const std::array read = operands_of(lane);
    for (int k = 0; k < lane_operands(lane.op); ++k) ++uses[read[static_cast<size_t>(k)]];
    if (lane.op == LaneOp::select) ++conditions[lane.a];
  }
  const auto moves = [&](size_t i) {
    return compares(code[i].op) && uses[i] == conditions[i] && uses[i] <= most_selects;
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < code.size(); ++i) {
    if (moves(i) || is_dead(i)) continue;
    if (code[i].op == LaneOp::select && moves(code[i].a)) order.push_back(code[i].a);
    order.push_back(i);
  }
  return in_order_of(lanes, order);
}

LaneBuilder::Value LaneBuilder::emit(const Lane& lane) {
  auto& code = lanes_.code;
  const auto same = lane.op == LaneOp::store ? code.end() : std::ranges::find(code, lane);
  if (same != code.end()) return static_cast<Value>(same - code.begin());
  PT_ASSERT(code.size() < UINT16_MAX);
  code.push_back(lane);
  return static_cast<Value>(code.size() - 1);
}

}  // namespace partita::jit
