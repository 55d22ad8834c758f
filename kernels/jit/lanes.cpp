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

LaneBuilder::Value LaneBuilder::emit(const Lane& lane) {
  auto& code = lanes_.code;
  const auto same = lane.op == LaneOp::store ? code.end() : std::ranges::find(code, lane);
  if (same != code.end()) return static_cast<Value>(same - code.begin());
  PT_ASSERT(code.size() < UINT16_MAX);
  code.push_back(lane);
  return static_cast<Value>(code.size() - 1);
}

}  // namespace partita::jit
