// SPDX-License-Identifier: Apache-2.0
// BlockKernel: machine code that copies blocks which lie along one or two axes.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/flat/block_plan.hpp"

namespace partita::jit {

class BlockKernel : private Emitter {
 public:
  /// Code of the moves for a number of blocks along `outer`, and at each of them for all along `inner`. `streaming`:
  /// moves are whole vectors that go past the caches, to addresses that are multiples of theirs; the caller fences.
  /// `fetching`: of the source's lines, not in turns.
  /// AVX-512 alone. Throws Xbyak::Error where there is no memory for code.
  BlockKernel(const BlockPlan& plan, const BlockAxis& outer, const BlockAxis& inner, bool streaming, Fetching fetching);
  /// So many along `outer`, at least one. Reads nothing but what lies between a block's first and last element, and
  /// writes elements alone; source and result must not overlap.
  void operator()(const void* src, void* dst, int64_t blocks) const { entry_(src, dst, blocks); }

 private:
  /// Elements' numbers in one vector, or in two: the order of a permutation.
  using Order = std::vector<int32_t>;
  struct Step {
    size_t window;
    Order order;
  };
  static bool is_wide(const BlockMove& move);
  std::vector<Step> steps_of(const BlockMove& move) const;
  void hold_orders(const BlockPlan& plan);
  Xbyak::Zmm order(const Order& order);
  void fetch(const BlockMove& move);
  void emit(const BlockMove& move);
  template <class Vector>
  void permute(const Vector& made, const Vector& order, const Vector& from, bool both);
  void load(const Xbyak::Zmm& to, const BlockMove::Window& window);

  bool halves_, streaming_;
  Fetching fetching_;
  std::set<int64_t> fetched_;  // lines of the block's source
  std::map<Order, int> held_;  // registers
  int turn_ = 0;
  void (*entry_)(const void*, void*, int64_t) = nullptr;
};

}  // namespace partita::jit
