// SPDX-License-Identifier: Apache-2.0
// Body: registers for the values of a lane program, and its code inside somebody else's loop.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// What the surrounding kernel knows: where operands are, what the skeleton made, where the loop stands.
struct BodyHooks {
  std::function<void(Xbyak::Xmm dst, int operand)> load;
  std::function<void(Xbyak::Xmm value, const Lane& store)> store;
  std::function<void(Xbyak::Xmm dst)> skeleton;
  std::function<void(Xbyak::Xmm dst, int axis)> index;
  std::function<void(Xbyak::Xmm dst, int operand)> number;
  std::function<void(Xbyak::Xmm dst, Xbyak::Xmm places, int operand)> four_bits;
};

/// Vector registers that any body can do with: an operation's operands and its result.
inline constexpr int kLeastRegisters = 4;

/// Registers and slots that a body may use.
struct BodyRoom {
  int first, end;       ///< vector registers [first, end)
  Xbyak::RegExp spill;  ///< 64-byte slots for values that do not fit
};

/// Loads come before stores, so that an output may lie over an input. What depends on constants and on operands that
/// repeat alone is computed once a row; it stays in registers where there is room, else in slots.
class Body {
 public:
  /// `repeats(k)`: operand k has one value for a whole row.
  Body(Emitter& emitter, const Lanes& lanes, const BodyRoom& room, const std::function<bool(int operand)>& repeats);

  /// Slots of 64 bytes needed at `spill`.
  int spill_slots() const { return slots_; }
  /// Whether elements need no slots, nor constants that are made anew.
  bool fits() const { return fits_; }
  /// Whether registers keep something from one vector of elements to the next.
  bool pins() const { return end_ < room_end_; }
  /// Before the rows.
  void emit_constants();
  /// Before the elements of a row; of the hooks only `load` is called.
  void emit_row_values(const BodyHooks& hooks);
  /// One vector of elements.
  void emit(const BodyHooks& hooks);

 private:
  struct Place {
    int reg = -1, slot = -1;
  };
  struct State;

  enum class Part : uint8_t { row, element };

  /// A comparison whose mask the select behind it takes from a mask register.
  bool is_condition(size_t i) const;
  /// A select of a value or zero, which needs no register for the zero.
  bool selects_or_zero(const Lane& lane) const {
    return e_.wide() && lane.op == LaneOp::select && is_constant(lane.c) && code_[lane.c].imm == 0;
  }
  /// How many of a, b, c the operation reads from registers or memory.
  int operands_read(const Lane& lane) const { return selects_or_zero(lane) ? 2 : lane_operands(lane.op); }
  bool is_constant(int value) const { return code_[static_cast<size_t>(value)].op == LaneOp::constant; }
  /// Operations that read it, in their order.
  std::span<const size_t> uses(int value) const {
    const auto v = static_cast<size_t>(value);
    return {uses_.data() + first_use_[v], first_use_[v + 1] - first_use_[v]};
  }
  void find_uses();
  void find_row_values(const std::function<bool(int)>& repeats);
  int pin(const std::vector<int>& values, int enough);
  void walk(State& state, Part part, const BodyHooks* hooks) const;
  /// Operand of operation `i` that is read from memory as it is computed; -1: none.
  int from_memory(const State& state, size_t i) const;
  Xbyak::Address memory(const State& state, int value) const;
  void make(size_t i, Xbyak::Xmm dst, const Xbyak::Xmm (&in)[3], const BodyHooks& hooks) const;
  int take_register(State& state) const;
  void find_next(State& state, int value, size_t at) const;
  Xbyak::Xmm operand(State& state, int value, size_t at) const;

  Emitter& e_;
  std::vector<Lane> code_;  // loads before stores
  std::vector<size_t> uses_, first_use_;
  int first_, room_end_, end_;
  Xbyak::RegExp spill_;
  std::vector<bool> of_row_;        // computed once a row
  std::vector<bool> for_elements_;  // of the row, and read by the elements
  std::vector<int> pinned_;         // register of each value, -1: not pinned
  std::vector<int> home_;           // slot of each row value that is not pinned
  int homes_ = 0, slots_ = 0;
  bool fits_ = false;
};

}  // namespace partita::jit
