// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/taps/operand_code.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/code/expand.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

constexpr std::array kRegisters = {12, 13, 14, 3};
Xbyak::Reg64 register_of(size_t k) { return Xbyak::Reg64(kRegisters[k]); }

}  // namespace

OperandCode::OperandCode(std::vector<TurnOperand> in, std::vector<TurnOperand> out, int64_t elements)
    : Emitter(Isa::avx512), in_(std::move(in)), out_(std::move(out)), elements_(elements) {
  PT_ASSERT(in_.size() + out_.size() <= kMostOperands);
}

int OperandCode::count_of(int vector) const {
  return static_cast<int>(std::min<int64_t>(lanes(), elements_ - int64_t{vector} * lanes()));
}

bool OperandCode::repeats(int input) const {
  const TurnOperand& o = in_[static_cast<size_t>(input)];
  return !o.steps && o.bytes == 0;
}

void OperandCode::emit_addresses(size_t in, size_t out) {
  for (size_t k = 0; k < in_.size() + out_.size(); ++k) {
    const bool input = k < in_.size();
    mov(rax, ptr[rdi + static_cast<int>(input ? in : out)]);
    mov(register_of(k), ptr[rax + 8 * static_cast<int>(input ? k : k - in_.size())]);
  }
}

void OperandCode::emit_next_turn() {
  for (size_t k = 0; k < in_.size() + out_.size(); ++k) advance(register_of(k), operand(k).bytes);
}

void OperandCode::emit_source(const SourceRows& rows, Xbyak::Zmm to, int vector, int count, int weights,
                              Xbyak::Zmm moment) {
  if (rows.count == 0) vpxord(to, to, to);
  const int bytes = lanes() * bits_of(rows.dtype) / 8, behind = vector * bytes;
  for (size_t r = 0; r < rows.count; ++r) {
    const Xbyak::Zmm row = r == 0 ? to : moment, weight(weights + static_cast<int>(r));
    if (r + rows.fetched_rows >= rows.count && begins_line(behind, bytes))
      fetch_line(row_register(r) + behind, rows.fetching);
    load(row, rows.dtype, Walk::next, row_register(r) + behind, count);
    if (!rows.weighted) {
      if (r > 0) emit_fold(rows.fold, to, row);
    } else {
      r == 0 ? vmulps(to, to, weight) : vfmadd231ps(to, row, weight);
    }
  }
}

void OperandCode::emit_fold(Fold fold, Xbyak::Zmm to, Xbyak::Zmm value) {
  const bool maximum = fold == Fold::max;
  compute({.op = maximum ? LaneOp::max : LaneOp::add, .flag = maximum}, to, to, value, to);
}

void OperandCode::load_operand(const Xbyak::Xmm& dst, int input, int vector) {
  const auto k = static_cast<size_t>(input);
  load(dst, operand(k).dtype, operand(k).steps ? Walk::next : Walk::same, address(k, vector), count_of(vector));
}

void OperandCode::store_operand(const Xbyak::Xmm& value, const Lane& store, int vector, bool streaming) {
  const size_t k = in_.size() + static_cast<size_t>(store.imm);
  const int count = count_of(vector);
  Emitter::store(value, operand(k).dtype, store.flag, address(k, vector), count, streaming && count == lanes());
}

Xbyak::RegExp OperandCode::address(size_t k, int vector) const {
  return register_of(k) + (operand(k).steps ? vector * lanes() * bits_of(operand(k).dtype) / 8 : 0);
}

Lanes numbered_back(const Problem& p, std::span<const int> in) {
  Lanes back = expanded(back_expression(p), p, Isa::avx512);
  for (Lane& lane : back.code)
    if (lane.op == LaneOp::load) lane.imm = static_cast<int32_t>(std::ranges::find(in, lane.imm) - in.begin());
  return back;
}

}  // namespace partita::jit
