// SPDX-License-Identifier: Apache-2.0
// Which values depend on four bits alone, and the program that looks them up.
#include "kernels/jit/code/four_bits.hpp"

#include <algorithm>

namespace partita::jit {
namespace {

constexpr size_t kLeastOperations = 2;  ///< that a lookup replaces, besides the conversion of the bits

/// What lane i of the result holds depends on lane i of what is read, and on nothing else.
bool is_by_lane(LaneOp op) {
  using enum LaneOp;
  const auto is_from = [&](LaneOp first, LaneOp last) { return op >= first && op <= last; };
  return is_from(add, sra) || is_from(to_int, fraction) || is_from(inverse, rectified);
}

/// What a value depends on at the most.
enum class From : uint8_t { row, bits, elsewhere };

/// `bits`: the load that is looked at.
std::vector<From> origins(const std::vector<Lane>& code, size_t bits, const std::function<bool(int)>& repeats) {
  std::vector<From> from(code.size(), From::elsewhere);
  for (size_t i = 0; i < code.size(); ++i) {
    const Lane& lane = code[i];
    if (i == bits) {
      from[i] = From::bits;
    } else if (lane.op == LaneOp::constant || (lane.op == LaneOp::load && repeats(lane.imm))) {
      from[i] = From::row;
    } else if (is_by_lane(lane.op)) {
      from[i] = From::row;
      for (int k = 0; k < lane_operands(lane.op); ++k)
        from[i] = std::max(from[i], from[operands_of(lane)[static_cast<size_t>(k)]]);
    }
  }
  return from;
}

/// Values that depend on the bits and are read by what depends on more.
std::vector<size_t> wanted_values(const std::vector<Lane>& code, const std::vector<From>& from) {
  std::vector<size_t> list;
  for (size_t i = 0; i < code.size(); ++i) {
    if (from[i] == From::bits) continue;
    for (int k = 0; k < lane_operands(code[i].op); ++k) {
      const size_t value = operands_of(code[i])[static_cast<size_t>(k)];
      if (from[value] == From::bits && std::ranges::find(list, value) == list.end()) list.push_back(value);
    }
  }
  return list;
}

/// The program where `wanted` is looked up by the bits that the load at `bits` brought.
Lanes looked_up_by(const Lanes& lanes, size_t bits, size_t wanted, bool is_signed, const std::vector<From>& from) {
  constexpr int kUnused = 28;  // above the four bits
  Lanes made;
  made.in_order = lanes.in_order;
  LaneBuilder b(made);
  std::vector<uint16_t> place(lanes.code.size());
  uint16_t found = 0;
  for (size_t i = 0; i < lanes.code.size(); ++i) {
    Lane lane = lanes.code[i];
    if (i == bits) {
      uint16_t numbers = b.op(LaneOp::lane_number, 0);
      if (is_signed) numbers = b.op(LaneOp::sra, b.op(LaneOp::shl, numbers, 0, 0, kUnused), 0, 0, kUnused);
      place[i] = b.op(LaneOp::to_float, numbers);
      found = b.emit({.op = LaneOp::four_bits, .a = b.op(LaneOp::bit_places, 0), .imm = lane.imm});
      continue;
    }
    const auto moved = [&](uint16_t value) { return value == wanted && from[i] != From::bits ? found : place[value]; };
    lane.a = moved(lane.a);
    lane.b = moved(lane.b);
    lane.c = moved(lane.c);
    made.code.push_back(lane);
    place[i] = static_cast<uint16_t>(made.code.size() - 1);
    if (i == wanted) found = b.op(LaneOp::lookup, found, place[i]);
  }
  if (!lanes.code.empty()) made.result = lanes.result == wanted ? found : place[lanes.result];
  return made;
}

}  // namespace

Lanes with_four_bits_looked_up(const Lanes& lanes, const std::function<Dtype(int)>& type_of,
                               const std::function<bool(int)>& repeats) {
  Lanes made = lanes;
  for (size_t i = 0; i < made.code.size(); ++i) {
    const Lane& lane = made.code[i];
    if (lane.op != LaneOp::load || repeats(lane.imm)) continue;
    const Dtype type = type_of(lane.imm);
    if (type != Dtype::s4 && type != Dtype::u4) continue;
    const std::vector<From> from = origins(made.code, i, repeats);
    const std::vector<size_t> wanted = wanted_values(made.code, from);
    const auto replaced = static_cast<size_t>(std::ranges::count(from, From::bits)) - 1;
    // What nobody reads may depend on the bits as well.
    if (wanted.size() != 1 || wanted[0] == i || replaced < kLeastOperations) continue;
    made = looked_up_by(made, i, wanted[0], type == Dtype::s4, from);
  }
  return made;
}

}  // namespace partita::jit
