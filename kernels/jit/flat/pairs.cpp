// SPDX-License-Identifier: Apache-2.0
// Finding of pairs, and their loads, stores and roundings.
#include "kernels/jit/flat/pairs.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Value = uint16_t;

constexpr int kLanes = lanes_of(Isa::avx512), kBytes = kLanes * 2;

/// A program that takes its operations from another one.
class Copy {
 public:
  explicit Copy(const Lanes& from) : from_(from), moved_(from.code.size()) { to_.in_order = from.in_order; }

  Value emit(const Lane& lane) {
    PT_ASSERT(to_.code.size() < UINT16_MAX);
    to_.code.push_back(lane);
    return static_cast<Value>(to_.code.size() - 1);
  }
  /// Operation `i` of the other one, with its operands as they are called here.
  Lane moved(size_t i) const {
    Lane lane = from_.code[i];
    for (Value* v : {&lane.a, &lane.b, &lane.c}) *v = moved_[*v].value_or(0);
    return lane;
  }
  bool has(size_t i) const { return moved_[i].has_value(); }
  void take(size_t i, Value value) { moved_[i] = value; }
  /// bf16 elements of `half` of a pair as f32.
  Value unpacked(Value pair, int half) {
    std::optional<Value>& places = places_[half];
    if (!places) places = emit({.op = LaneOp::word_places, .imm = half});
    return emit({.op = LaneOp::unpack, .a = pair, .b = *places});
  }
  Lanes finished() {
    if (!to_.code.empty()) to_.result = moved_[from_.result].value_or(0);
    return std::move(to_);
  }

 private:
  const Lanes& from_;
  Lanes to_;
  std::vector<std::optional<Value>> moved_;
  std::optional<Value> places_[2];
};

bool is_whole(const RowShape& shape, const RowOperand& o) {
  return o.count == kLanes || (o.count == 0 && shape.vectors % 2 == 0);
}

/// Of each operand of `side`, which is the shape's, the number of that whose vectors lie before its own in the same 64
/// bytes, which now is packed; -1: none.
std::vector<int> pair_up(const RowShape& shape, std::vector<RowOperand>& side, const std::vector<Dtype>& dtypes) {
  std::vector<int> first_of(side.size(), -1);
  std::map<std::pair<int, int>, int> at;  // by whose address it has, and bytes behind it
  const auto place_of = [&](size_t k) { return side[k].place < 0 ? static_cast<int>(k) : side[k].place; };
  const auto fits = [&](const RowOperand& o) {
    return std::ranges::find(dtypes, o.dtype) != dtypes.end() && o.fold == Fold::none && o.steps && !o.joined &&
           o.every_other == EveryOther::no && is_whole(shape, o);
  };
  for (size_t k = 0; k < side.size(); ++k)
    if (fits(side[k])) at[{place_of(k), side[k].behind}] = static_cast<int>(k);
  for (size_t k = 0; k < side.size(); ++k) {
    if (!fits(side[k]) || side[k].behind % (2 * kBytes) != kBytes) continue;
    const auto found = at.find({place_of(k), side[k].behind - kBytes});
    if (found == at.end()) continue;
    first_of[k] = found->second;
    side[static_cast<size_t>(found->second)].packed = true;
  }
  return first_of;
}

Lanes with_paired_loads(const Lanes& lanes, RowShape& shape) {
  const std::vector<int> first_of = pair_up(shape, shape.in, {Dtype::bf16});
  if (std::ranges::none_of(shape.in, &RowOperand::packed)) return lanes;
  for (size_t k = 0; k < first_of.size(); ++k) {
    if (first_of[k] < 0) continue;
    RowOperand& first = shape.in[static_cast<size_t>(first_of[k])];
    if (!first.fetching) first.fetching = shape.in[k].fetching;
  }
  Copy copy(lanes);
  std::map<int32_t, Value> pairs;  // by their first operand
  for (size_t i = 0; i < lanes.code.size(); ++i) {
    const Lane lane = copy.moved(i);
    const auto k = static_cast<size_t>(lane.imm);
    const bool loads = lane.op == LaneOp::load, second = loads && first_of[k] >= 0;
    if (!second && !(loads && shape.in[k].packed)) {
      copy.take(i, copy.emit(lane));
      continue;
    }
    const int32_t first = second ? first_of[k] : lane.imm;
    if (!pairs.contains(first)) pairs[first] = copy.emit({.op = LaneOp::load, .imm = first});
    copy.take(i, copy.unpacked(pairs[first], second ? 1 : 0));
  }
  return copy.finished();
}

Lanes with_paired_stores(const Lanes& lanes, RowShape& shape) {
  for (const Lane& lane : lanes.code)
    if (lane.op == LaneOp::store && lane.flag) return lanes;  // integers
  // Without an instruction that rounds two vectors, pairs are worth it where they are whole cache lines.
  std::vector<Dtype> dtypes;
  if (shape.streaming || converts_to_bf16()) dtypes.push_back(Dtype::bf16);
  if (shape.streaming) dtypes.push_back(Dtype::f16);
  const std::vector<int> first_of = pair_up(shape, shape.out, dtypes);
  if (std::ranges::none_of(shape.out, &RowOperand::packed)) return lanes;
  Copy copy(lanes);
  std::map<int32_t, Value> stored;  // by their operand; each waits for the other one
  for (size_t i = 0; i < lanes.code.size(); ++i) {
    Lane lane = copy.moved(i);
    const auto k = static_cast<size_t>(lane.imm);
    const bool stores = lane.op == LaneOp::store;
    if (stores && shape.out[k].packed) {
      stored[lane.imm] = lane.a;
      copy.take(i, lane.a);
      continue;
    }
    if (stores && first_of[k] >= 0) {
      lane.imm = first_of[k];
      lane.a = copy.emit(
          {.op = LaneOp::pack, .a = stored.at(lane.imm), .b = lane.a, .imm = static_cast<int32_t>(shape.out[k].dtype)});
    }
    copy.take(i, copy.emit(lane));
  }
  return copy.finished();
}

/// Of values that wait for equally many operations, for none of those waits for the other one.
class PairedRoundings {
 public:
  explicit PairedRoundings(const Lanes& lanes) : lanes_(lanes), copy_(lanes), partner_(lanes.code.size()) {
    const std::vector<int> levels = levels_of(lanes);
    std::map<int, size_t> waiting;  // by level
    for (size_t i = 0; i < lanes.code.size(); ++i) {
      const Lane& lane = lanes.code[i];
      if (lane.op != LaneOp::cast || lane.imm != static_cast<int32_t>(Dtype::bf16) || lane.number) continue;
      const auto [other, alone] = waiting.try_emplace(levels[i], i);
      if (alone) continue;
      partner_[i] = other->second;
      partner_[other->second] = i;
      waiting.erase(other);
    }
  }

  Lanes run() {
    if (std::ranges::none_of(partner_, [](const auto& partner) { return partner.has_value(); })) return lanes_;
    for (size_t i = 0; i < lanes_.code.size(); ++i) make(i);
    return copy_.finished();
  }

 private:
  /// The operation, behind what it reads.
  void make(size_t i) {
    if (copy_.has(i)) return;
    make_operands(i);
    if (!partner_[i]) return copy_.take(i, copy_.emit(copy_.moved(i)));
    const size_t first = std::min(i, *partner_[i]), second = std::max(i, *partner_[i]);
    make_operands(*partner_[i]);
    const Value pair = copy_.emit({.op = LaneOp::pack,
                                   .a = copy_.moved(first).a,
                                   .b = copy_.moved(second).a,
                                   .imm = static_cast<int32_t>(Dtype::bf16)});
    copy_.take(first, copy_.unpacked(pair, 0));
    copy_.take(second, copy_.unpacked(pair, 1));
  }

  void make_operands(size_t i) {
    const Lane& lane = lanes_.code[i];
    const Value operands[] = {lane.a, lane.b, lane.c};
    for (int k = 0; k < lane_operands(lane.op); ++k) make(operands[k]);
  }

  const Lanes& lanes_;
  Copy copy_;
  std::vector<std::optional<size_t>> partner_;
};

}  // namespace

Lanes in_pairs(const Lanes& lanes, RowShape& shape) {
  const Lanes moved = with_paired_stores(with_paired_loads(lanes, shape), shape);
  return lanes.in_order || !converts_to_bf16() ? moved : PairedRoundings(moved).run();
}

}  // namespace partita::jit
