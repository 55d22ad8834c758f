// SPDX-License-Identifier: Apache-2.0
// Code of a row.
#include "kernels/jit/flat/row_emitter.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/jit/code/imm32.hpp"
#include "kernels/jit/code/vector_random.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr size_t kMostTogether = 96;  ///< operations: the code is written once for each row
constexpr int64_t kShortRow = 12;     ///< vectors: longer rows are folded one by one
/// Of a long row that are folded by themselves, because each fold waits for the one before it; operations of a vector
/// beyond which that does not matter.
constexpr int kRowParts = 4;
constexpr size_t kFewOperations = 8;

}  // namespace

TensorDesc described(const RowOperand& operand) {
  return operand.numbers ? *operand.numbers : TensorDesc{operand.dtype, {}, {}, 0};
}

int RowEmitter::begin_rows(const RowShape& shape, size_t operations, int first_slot, bool some_rows) {
  PT_ASSERT(shape.vectors == 1 || shape.length % (lanes() * shape.vectors) == 0);
  shape_ = shape;
  first_slot_ = first_slot;
  accumulators_.assign(shape.out.size(), -1);
  int registers = value_registers(), folds = 0;
  for (size_t k = 0; k < shape.out.size(); ++k) folds += folds_row(k) ? 1 : 0;
  PT_ASSERT(folds <= kMaxRowFolds);
  rows_together_ = some_rows && operations <= kMostTogether ? rows_together(folds) : 1;
  row_parts_ = some_rows && rows_together_ == 1 ? row_parts(folds, operations) : 1;
  for (size_t k = 0; k < shape.out.size(); ++k)
    if (folds_row(k)) accumulators_[k] = registers -= rows_together_ * row_parts_;
  held_ = some_rows && folds == 0 ? held_vectors(operations) : 0;
  for (size_t k = 0; k < shape.out.size(); ++k)
    if (held_ > 0 && sums_up(k)) accumulators_[k] = registers -= held_;
  return registers;
}

/// The number of an operand's result among those that are joined.
size_t RowEmitter::joined_result(size_t output) const {
  const int place = shape_.out[output].place;
  const size_t first = place < 0 ? output : static_cast<size_t>(place);
  const auto begin = shape_.out.begin();
  return static_cast<size_t>(std::count_if(begin, begin + static_cast<ptrdiff_t>(first), begins_joined));
}

std::vector<Xbyak::Reg64> RowEmitter::assign_addresses(size_t pointers) {
  std::vector<Xbyak::Reg64> free = {r9, r10, r11, rbx, r12, r13, r14, r15}, kept;
  addresses_.assign(shape_.in.size() + shape_.out.size(), {});
  const auto take = [&](bool steps) {
    for (size_t k = 0; k < addresses_.size() && !free.empty(); ++k) {
      if (operand(k).steps != steps || !has_address(k)) continue;
      addresses_[k] = free.front();
      free.erase(free.begin());
    }
  };
  if (shape_.joined) free.pop_back();
  take(true);
  for (; !free.empty() && kept.size() < pointers; free.erase(free.begin())) kept.push_back(free.front());
  take(false);
  return kept;
}

/// Not what lies behind another operand, nor what is joined, which goes where JoinedPlaces are.
bool RowEmitter::has_address(size_t k) const {
  if (operand(k).place >= 0) return false;
  return !shape_.joined || k < shape_.in.size() || (joins_vectors() && !operand(k).joined);
}

bool RowEmitter::joins_vectors() const {
  return shape_.joined && std::ranges::any_of(shape_.out, [](const RowOperand& o) { return o.joined.has_value(); });
}

const RowOperand& RowEmitter::operand(size_t k) const {
  return k < shape_.in.size() ? shape_.in[k] : shape_.out[k - shape_.in.size()];
}

/// Short rows that fold into numbers next to each other; as many numbers as have room for their accumulators.
int RowEmitter::rows_together(int folds) const {
  if (folds == 0 || folds * kFoldedRows > value_registers() / 3 || shape_.vectors > 1 || shape_.joined) return 1;
  if (shape_.length > kShortRow * lanes()) return 1;
  for (size_t k = 0; k < shape_.out.size(); ++k)
    if (folds_row(k) && shape_.out[k].row_bytes != int64_t{sizeof(float)}) return 1;
  return kFoldedRows;
}

int RowEmitter::row_parts(int folds, size_t operations) const {
  const bool fits = folds > 0 && folds * kRowParts <= value_registers() / 3 && operations <= kFewOperations;
  const bool is_long = shape_.length > kShortRow * lanes();
  return fits && is_long && shape_.vectors == 1 && !shape_.joined ? kRowParts : 1;
}

/// Vectors of the rows that are added to one row, where they fit into registers.
int RowEmitter::held_vectors(size_t operations) const {
  size_t outputs = 0;
  for (size_t k = 0; k < shape_.out.size(); ++k) outputs += sums_up(k) ? 1 : 0;
  const auto vectors = static_cast<size_t>((shape_.length + lanes() - 1) / lanes());
  const bool fits =
      outputs * vectors <= static_cast<size_t>(value_registers()) / 2 && vectors * operations <= kMostTogether;
  return fits && outputs > 0 && shape_.vectors == 1 && !shape_.joined ? static_cast<int>(vectors) : 0;
}

/// Where operand `k` is in this row; may use rdx.
RegExp RowEmitter::address(size_t k) {
  const RowOperand& o = operand(k);
  if (o.place >= 0) k = static_cast<size_t>(o.place) + (k < shape_.in.size() ? 0 : shape_.in.size());
  if (addresses_[k]) return *addresses_[k] + o.behind;
  mov(rdx, slot(k));
  return rdx + o.behind;
}

bool RowEmitter::folds_row(size_t output) const {
  return shape_.out[output].fold != Fold::none && !shape_.out[output].steps;
}

/// Whether all rows of an output are one.
bool RowEmitter::sums_up(size_t output) const {
  const RowOperand& o = shape_.out[output];
  return o.fold != Fold::none && o.steps && o.row_bytes == 0;
}

/// Elements in a vector of the row.
int RowEmitter::lanes_of(int vector) const {
  return static_cast<int>(std::min<int64_t>(lanes(), shape_.length - int64_t{vector} * lanes()));
}

void RowEmitter::emit_row(Body& body) {
  emit_elements(body);
  for (size_t k = 0; k < shape_.out.size(); ++k) {
    if (!folds_row(k)) continue;
    for (int part = row_parts_ / 2; part > 0; part /= 2)
      for (int i = 0; i < part; ++i)
        fold_into(vec(accumulators_[k] + i), vec(accumulators_[k] + part + i), shape_.out[k].fold, lanes());
    fold_lanes_to_memory(accumulator(k), shape_.out[k].fold, address(shape_.in.size() + k));
  }
}

void RowEmitter::emit_elements(Body& body) {
  const int step = lanes() * shape_.vectors;
  const int64_t whole = shape_.length / step * step;
  const int rest = static_cast<int>(shape_.length - whole);
  for (size_t k = 0; k < shape_.out.size(); ++k) {
    if (!folds_row(k)) continue;
    broadcast_bits(accumulator(k), std::bit_cast<int32_t>(identity_of(shape_.out[k].fold)));
    for (int part = 1; part < row_parts_; ++part) vmovaps(vec(accumulators_[k] + part), accumulator(k));
  }
  xor_(ecx, ecx);
  body.emit_row_values(hooks_for(lanes()));
  if (held_ > 0) {
    for (turn_ = 0; turn_ < held_; ++turn_) {
      body.emit(hooks_for(lanes_of(turn_)));
      if (turn_ + 1 < held_) add(rcx, lanes());
    }
    turn_ = 0;
    return;
  }
  const auto vectors = [&](int64_t count) {
    for (passed_ = 0; passed_ < count; ++passed_) {
      body.emit(hooks_for(lanes()));
      add(rcx, step);
    }
    passed_ = 0;
  };
  const int64_t together = vectors_together(), end = whole / (step * together) * step * together;
  if (end > 0) {
    Xbyak::Label next;
    align(16);
    L(next);
    vectors(together);
    if (end > step * together) {
      cmp(rcx, imm32(end));
      jl(next, T_NEAR);
    }
  }
  vectors((whole - end) / step);
  if (rest > 0) body.emit(hooks_for(rest));
}

/// Of one pass of the loop: where finding the line that is fetched takes time, it is done once a line, not once for
/// each of the vectors that a line has.
int RowEmitter::vectors_together() const {
  if (row_parts_ > 1) return row_parts_;
  const bool narrow = std::ranges::any_of(shape_.in, [&](const RowOperand& o) {
    return o.fetching.how == Fetching::How::in_turns && lanes() * bits_of(o.dtype) / 8 < kCacheLine;
  });
  return narrow && shape_.vectors == 1 ? 2 : 1;
}

BodyHooks RowEmitter::hooks_for(int count) {
  BodyHooks hooks;
  hooks.load = [this, count](Xmm dst, int operand) { load_operand(dst, operand, count); };
  hooks.store = [this, count](Xmm value, const Lane& lane) { store_operand(value, lane, count); };
  hooks.index = [this](Xmm dst, int axis) { load_index(dst, axis); };
  hooks.number = [this](Xmm dst, int operand) { load_number(dst, operand); };
  hooks.four_bits = [this, count](Xmm dst, Xmm places, int operand) { load_bits(dst, places, operand, count); };
  return hooks;
}

/// The vector's elements of operand `k`; may use rdx.
RegExp RowEmitter::elements(size_t k) {
  const int bits = bits_of(operand(k).dtype);
  if (held_ > 0) return address(k) + turn_ * lanes() * bits / 8;
  if (bits >= 8) return address(k) + rcx * (bits / 8);
  lea(rdx, ptr[address(k)]);
  shr(rcx, 1);  // it is even
  add(rdx, rcx);
  add(rcx, rcx);
  return RegExp(rdx);
}

void RowEmitter::load_operand(Xmm dst, int k, int count) {
  const RowOperand& o = shape_.in[static_cast<size_t>(k)];
  if (!o.steps) return load(dst, o.dtype, Walk::same, address(static_cast<size_t>(k)), count);
  const RegExp from = next_elements(k, count);
  if (o.packed) return load_bytes(dst, sizeof(float), from, count);
  if (o.every_other != EveryOther::no) return load_every_other(dst, from, o.every_other == EveryOther::odd);
  load(dst, o.dtype, Walk::next, from, count);
}

void RowEmitter::load_bits(Xmm dst, Xmm places, int k, int count) {
  const RegExp from = next_elements(k, count);
  load_four_bits(dst, places, from, count);
}

/// The vector's elements of input `k`, of which `count` becomes how many it has; fetches what comes behind them.
RegExp RowEmitter::next_elements(int k, int& count) {
  const RowOperand& o = shape_.in[static_cast<size_t>(k)];
  if (o.count > 0) count = o.count;
  const RegExp from = elements(static_cast<size_t>(k));
  fetch(o, from, count);
  return from;
}

/// What lies some way behind the vector at `from`.
void RowEmitter::fetch(const RowOperand& o, const RegExp& from, int count) {
  if ((held_ > 0 ? turn_ : passed_) * lanes() * bits_of(o.dtype) / 8 % kCacheLine != 0) return;
  fetch_line(from, o.fetching);
  if (o.fetching.how != Fetching::How::in_turns && count == lanes()) fetch_line(from, shape_.fetching);
}

void RowEmitter::store_operand(Xmm value, const Lane& lane, int count) {
  const auto output = static_cast<size_t>(lane.imm);
  const RowOperand& o = shape_.out[output];
  if (o.count > 0) count = o.count;
  if (o.fold != Fold::none && lane.flag) {
    vcvtdq2ps(scratch(2), value);
    value = scratch(2);
  }
  if (accumulators_[output] >= 0) return fold_into(accumulator(output), value, o.fold, count);
  if (o.joined) {
    joined_->emit_store(joined_result(output), value, lane.flag, o.joined->number, o.joined->last, count);
    if (o.joined->ends_row) joined_->emit_row_end(int64_t{o.joined->number} * lanes() + count);
    return;
  }
  const RegExp to = elements(shape_.in.size() + output);
  if (o.fold != Fold::none) return fold_to_memory(value, o.fold, to, count);
  if (o.packed) return store_bytes(value, sizeof(float), to, count, shape_.streaming && !o.kept);
  store(value, o.dtype, lane.flag, to, count, shape_.streaming && !o.kept && count == lanes());
}

void RowEmitter::load_index(Xmm dst, int axis) {
  mov(rsi, ptr[rdi + offsetof(RowCall, coordinates)]);
  vpbroadcastd(dst, ptr[rsi + 4 * axis]);
  if (axis != inner_axis_) return;
  vmovd(Xmm(scratch(0).getIdx()), ecx);
  vpbroadcastd(scratch(0), Xmm(scratch(0).getIdx()));
  vpaddd(dst, dst, scratch(0));
  vpaddd(dst, dst, ptr[rip + lane_numbers()]);
}

void RowEmitter::load_number(Xmm dst, int k) {
  const int step = imm32(step_of(*shape_.in[static_cast<size_t>(k)].numbers));
  const RegExp first = address(static_cast<size_t>(k));
  imul(rsi, rcx, step);
  lea(rax, ptr[first + rsi]);
  const Xmm low(dst.getIdx());
  vmovq(low, rax);
  if (wide())
    vshufi32x4(Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(dst.getIdx()), 0);
  else
    vinserti128(Xbyak::Ymm(dst.getIdx()), Xbyak::Ymm(dst.getIdx()), low, 1);
}

}  // namespace partita::jit
