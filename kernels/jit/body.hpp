// SPDX-License-Identifier: Apache-2.0
// Body: registers for the values of a lane program, and its code inside somebody else's loop.
#pragma once

#include <functional>
#include <vector>

#include "kernels/jit/emitter.hpp"

namespace partita::jit {

/// What the surrounding kernel knows: where operands are, what the skeleton made, where the loop stands.
struct BodyHooks {
  std::function<void(Xbyak::Xmm dst, int operand)> load;
  std::function<void(Xbyak::Xmm value, const Lane& store)> store;
  std::function<void(Xbyak::Xmm dst)> skeleton;
  std::function<void(Xbyak::Xmm dst, int axis)> index;
};

/// Values get registers [first, end); values that do not fit go to 64-byte slots at `spill`. Loads come before stores,
/// so that an output may lie over an input. Constants stay in registers across iterations where there is room.
class Body {
 public:
  Body(Emitter& emitter, const Lanes& lanes, int first_register, int end_register, const Xbyak::RegExp& spill);

  /// Slots of 64 bytes needed at `spill`.
  int spill_slots() const { return slots_; }
  /// Before the loop.
  void emit_constants();
  /// One iteration.
  void emit(const BodyHooks& hooks);

 private:
  struct Place {
    int reg = -1, slot = -1;
  };
  struct State;

  bool is_constant(int value) const { return code_[static_cast<size_t>(value)].op == LaneOp::constant; }
  void walk(State& state, const BodyHooks* hooks) const;
  int take_register(State& state, size_t at) const;
  Xbyak::Xmm operand(State& state, int value, size_t at) const;

  Emitter& e_;
  std::vector<Lane> code_;                 // loads before stores
  std::vector<std::vector<size_t>> uses_;  // of each value, ascending
  int first_, end_;
  Xbyak::RegExp spill_;
  std::vector<int> pinned_;  // register of each value, -1: not pinned
  int slots_ = 0;
};

}  // namespace partita::jit
