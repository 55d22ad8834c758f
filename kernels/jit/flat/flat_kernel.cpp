// SPDX-License-Identifier: Apache-2.0
// Code of a flat kernel: rows, whole vectors of a row, the partial vector at its end.
//   rdi call, rsi and rdx addresses for a moment, rcx element in the row, r8 rows left; the first operands have their
//   addresses in registers, the others on the stack, where spilled values lie behind them.
#include "kernels/jit/flat/flat_kernel.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/code/four_bits.hpp"
#include "kernels/jit/code/frame.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr int64_t kLeastLookups = 3;  ///< vectors of a row: what is looked up takes about as long as one

}  // namespace

FlatKernel::FlatKernel(Isa isa, const Lanes& lanes, const RowShape& shape, int inner_axis)
    : RowEmitter(isa, inner_axis) {
  if (only_moves(lanes)) keep_denormals();
  int registers = begin_rows(shape, lanes.code.size(), 0, true);
  const std::vector<Dtype> types = joined_types();
  std::vector<Reg64> pointers = assign_addresses(2 * types.size());
  const size_t joined_at = addresses_.size(), slots = joined_at + 3 * types.size();
  if (shape.joined) {
    registers -= JoinedStores::registers(*this, types.size());
    joined_.emplace(static_cast<Emitter&>(*this), types, registers, r15d, rsp + static_cast<int>(8 * joined_at),
                    std::move(pointers));
  }
  const int spill_at = aligned(static_cast<int>(slots) * 8);
  const auto is_same = [this](int operand) { return repeats(operand); };
  const auto type_of = [&](int operand) { return shape.in[static_cast<size_t>(operand)].dtype; };
  const bool looks_up = wide() && shape.length >= kLeastLookups * this->lanes();
  Body body(*this, looks_up ? with_four_bits_looked_up(lanes, type_of, is_same) : lanes, {0, registers, rsp + spill_at},
            is_same);

  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, spill_at + body.spill_slots() * 64, [&] {
    for (size_t k = 0; k < addresses_.size(); ++k) {
      const bool input = k < shape.in.size();
      if (k == 0 && input) mov(rsi, ptr[rdi + offsetof(RowCall, in)]);
      if (k == shape.in.size()) mov(rsi, ptr[rdi + offsetof(RowCall, out)]);
      if (!has_address(k)) continue;
      const Reg64 to = addresses_[k].value_or(rax);
      mov(to, ptr[rsi + 8 * static_cast<int>(input ? k : k - shape.in.size())]);
      if (!addresses_[k]) mov(slot(k), rax);
    }
    mov(r8, ptr[rdi + offsetof(RowCall, rows)]);
    if (joined_) {
      mov(rsi, ptr[rdi + offsetof(RowCall, joined)]);
      for (size_t k = joined_at; k < slots; ++k) {
        mov(rax, ptr[rsi + 8 * static_cast<int>(k - joined_at)]);
        mov(ptr[rsp + 8 * static_cast<int>(k)], rax);
      }
      mov(r15, ptr[rdi + offsetof(RowCall, pending)]);
      joined_->emit_start();
    }
    body.emit_constants();
    emit_held([&](size_t output, const RegExp& at, int count) {
      load(accumulator(output), Dtype::f32, Walk::next, at, count);
    });

    Xbyak::Label row, single, done;
    align(16);
    L(row);
    if (rows_together_ > 1) {
      cmp(r8, rows_together_);
      jl(single, T_NEAR);
      emit_rows_together(body);
      sub(r8, rows_together_);
      jnz(row, T_NEAR);
      jmp(done, T_NEAR);
      L(single);
    }
    for (int64_t left = shape.group; left > 0; --left) {
      joined_ && !joins_vectors() ? emit_joined_row(body) : emit_row(body);
      for (size_t k = 0; k < addresses_.size(); ++k) left > 1 ? next_rows(k, 1) : next_group(k);
    }
    dec(r8);
    jnz(rows_together_ > 1 ? single : row, T_NEAR);

    L(done);
    emit_held([&](size_t output, const RegExp& at, int count) {
      store_bytes(accumulator(output), sizeof(float), at, count, false);
    });
    if (joined_) joined_->emit_finish();
    if (shape.streaming && shape.fenced) sfence();
  });
  emit_constants();
  if (joined_) joined_->emit_tables();
  finish_rows();
}

std::vector<Dtype> FlatKernel::joined_types() const {
  std::vector<Dtype> types;
  if (!shape_.joined) return types;
  const bool vectors = joins_vectors();
  for (const RowOperand& o : shape_.out)
    if (!vectors || begins_joined(o)) types.push_back(o.dtype);
  return types;
}

/// `move` between memory and registers for each vector that is held.
void FlatKernel::emit_held(const std::function<void(size_t output, const RegExp& at, int count)>& move) {
  if (held_ == 0) return;
  for (size_t k = 0; k < shape_.out.size(); ++k) {
    if (!sums_up(k)) continue;
    for (turn_ = 0; turn_ < held_; ++turn_)
      move(k, address(shape_.in.size() + k) + turn_ * lanes() * static_cast<int>(sizeof(float)),
           shape_.out[k].count > 0 ? shape_.out[k].count : lanes_of(turn_));
  }
  turn_ = 0;
}

/// Operand `k` goes on by `rows` rows.
void FlatKernel::next_rows(size_t k, int rows) { move_on(k, operand(k).row_bytes * rows); }

/// From the last row of a group.
void FlatKernel::next_group(size_t k) {
  const RowOperand& o = operand(k);
  move_on(k, shape_.group == 1 ? o.row_bytes : o.group_bytes - (shape_.group - 1) * o.row_bytes);
}

void FlatKernel::move_on(size_t k, int64_t bytes) {
  if (!has_address(k)) return;
  if (addresses_[k]) return advance(*addresses_[k], bytes);
  advance(slot(k), bytes);
}

/// Rows one after another, their numbers at once.
void FlatKernel::emit_rows_together(Body& body) {
  for (turn_ = 0; turn_ < rows_together_; ++turn_) {
    emit_elements(body);
    for (size_t k = 0; k < addresses_.size(); ++k)
      if (k < shape_.in.size() || !folds_row(k - shape_.in.size())) next_rows(k, 1);
  }
  turn_ = 0;
  for (size_t k = 0; k < shape_.out.size(); ++k) {
    if (!folds_row(k)) continue;
    fold_rows_to_memory(accumulators_[k], shape_.out[k].fold, address(shape_.in.size() + k));
    next_rows(shape_.in.size() + k, rows_together_);
  }
}

/// Vectors in pairs, as joined stores want them.
void FlatKernel::emit_joined_row(Body& body) {
  const int64_t total = (shape_.length + lanes() - 1) / lanes(), pairs = (total - 1) / 2;
  const int last = static_cast<int>((shape_.length - 1) % lanes()) + 1;
  const auto vector = [&](int64_t number, bool ends, int count) {
    passed_ = static_cast<int>(number);
    BodyHooks hooks = hooks_for(count);
    hooks.store = [this, number, ends, count](Xmm value, const Lane& lane) {
      joined_->emit_store(static_cast<size_t>(lane.imm), value, lane.flag, number, ends, count);
    };
    body.emit(hooks);
    add(rcx, lanes());
  };
  xor_(ecx, ecx);
  body.emit_row_values(hooks_for(lanes()));
  Xbyak::Label next;
  if (pairs > 1) L(next);
  if (pairs > 0)
    for (int64_t number : {0, 1}) vector(number, false, lanes());
  if (pairs > 1) {
    cmp(rcx, static_cast<uint32_t>(2 * pairs * lanes()));
    jl(next, T_NEAR);
  }
  const int64_t rest = total - 2 * pairs;
  for (int64_t number = 0; number < rest; ++number)
    vector(number, number + 1 == rest, number + 1 == rest ? last : lanes());
  joined_->emit_row_end(shape_.length);
}

}  // namespace partita::jit
