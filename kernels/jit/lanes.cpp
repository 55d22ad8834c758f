// SPDX-License-Identifier: Apache-2.0
// Operand counts and building of lane programs.
#include "kernels/jit/lanes.hpp"

#include <algorithm>

#include "src/base/check.hpp"

namespace partita::jit {

int lane_operands(LaneOp op) {
  switch (op) {
    using enum LaneOp;
    case load:
    case skeleton:
    case constant:
    case index: return 0;
    case store:
    case sqrt:
    case round:
    case floor:
    case shl:
    case shr:
    case sra:
    case to_int:
    case to_float:
    case cast:
    case fraction:
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
    case scale:
    case keep:
    case halves:
    case quarters: return 2;
    case fma:
    case fnma:
    case select: return 3;
  }
  return 0;
}

Lanes loads_first(const Lanes& lanes) {
  const std::vector<Lane>& code = lanes.code;
  size_t last_load = 0;
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].op == LaneOp::load) last_load = i;
  std::vector<size_t> order;
  std::vector<size_t> late;
  for (size_t i = 0; i < code.size(); ++i) {
    if (i < last_load && code[i].op == LaneOp::store)
      late.push_back(i);
    else
      order.push_back(i);
    if (i == last_load) order.insert(order.end(), late.begin(), late.end());
  }
  std::vector<uint16_t> place(code.size());
  for (size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<uint16_t>(k);
  Lanes sorted;
  for (size_t i : order) {
    Lane lane = code[i];
    lane.a = place[lane.a];
    lane.b = place[lane.b];
    lane.c = place[lane.c];
    sorted.code.push_back(lane);
  }
  if (!code.empty()) sorted.result = place[lanes.result];
  return sorted;
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
