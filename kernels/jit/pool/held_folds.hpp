// SPDX-License-Identifier: Apache-2.0
// HeldFolds: what results are folded into, in vector registers. In memory each vector would wait until what the one
// before it stored can be loaded again.
#pragma once

#include <functional>
#include <vector>

#include "kernels/jit/pool/plan.hpp"

namespace partita::jit {

class HeldFolds {
 public:
  /// Registers for so many vectors of numbers of each folded result; 0 where memory has to do, since registers are few.
  static int registers(const Emitter& e, const std::vector<PoolOperand>& out, int vectors);
  /// Uses vector registers from `first` on.
  HeldFolds(Emitter& e, const std::vector<PoolOperand>& out, int vectors, int first);

  /// Brings the address of vector `vector` of result `k` in a slot of PoolFolds; may say so from a register that it
  /// sets.
  using Place = std::function<Xbyak::RegExp(size_t k, int vector)>;
  /// Nothing is folded yet.
  void emit_start();
  /// Folds the `count` first lanes of `value` into a vector of result `k`, which `place` tells if it is in memory. Uses
  /// all scratch registers.
  void emit_fold(size_t k, int vector, const Xbyak::Xmm& value, int count, const Place& place);
  /// Folds what was folded into the slots; of each result `vectors` vectors.
  void emit_end(int vectors, const Place& place);

 private:
  Xbyak::Xmm held(size_t fold, int vector) const { return e_.vec(first_ + static_cast<int>(fold) * vectors_ + vector); }

  Emitter& e_;
  struct Output {
    size_t k;
    Fold how;
  };
  std::vector<Output> folds_;
  int vectors_, first_;
  bool holds_;
};

}  // namespace partita::jit
