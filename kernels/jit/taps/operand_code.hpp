// SPDX-License-Identifier: Apache-2.0
// OperandCode: what kernels share that make some vectors of results a turn: the operands of the expression behind, and
// sources that are folded over a few rows.
#pragma once

#include <span>
#include <vector>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/problem.hpp"

namespace partita::jit {

struct TurnOperand {
  Dtype dtype;
  bool steps;     ///< one element for each of the turn, else one for all
  int64_t bytes;  ///< to the next turn
};

struct SourceRows {
  Dtype dtype = Dtype::undef;
  size_t count = 0;
  Fold fold = Fold::sum;  ///< of the rows: a sum or a maximum
  bool weighted = false;
  Fetching fetching = {};   ///< of what is read next, along the last rows
  size_t fetched_rows = 1;  ///< so many of them
};

/// For AVX-512. Addresses of operands are in r12, r13, r14 and rbx, those of rows of sources in r8 to r11.
class OperandCode : protected Emitter {
 public:
  static constexpr size_t kMostOperands = 4, kMostRows = 4;

 protected:
  /// `elements` of a turn.
  OperandCode(std::vector<TurnOperand> in, std::vector<TurnOperand> out, int64_t elements);

  int vectors() const { return static_cast<int>((elements_ + lanes() - 1) / lanes()); }
  /// Elements of a vector.
  int count_of(int vector) const;
  /// Whether an input has one element for all turns.
  bool repeats(int input) const;
  /// Reads the addresses from the lists of inputs and outputs, which lie so many bytes behind rdi. Uses rax.
  void emit_addresses(size_t in, size_t out);
  void emit_next_turn();
  /// to = fold(to, value)
  void emit_fold(Fold fold, Xbyak::Zmm to, Xbyak::Zmm value);
  static Xbyak::Reg64 row_register(size_t row) { return Xbyak::Reg64(8 + static_cast<int>(row)); }
  /// to = vector `vector` of the rows, `count` elements of it, folded; sums are times the weights in vector registers
  /// from `weights` on, and zeros where there are no rows. Overwrites `moment`.
  void emit_source(const SourceRows& rows, Xbyak::Zmm to, int vector, int count, int weights, Xbyak::Zmm moment);
  void load_operand(const Xbyak::Xmm& dst, int input, int vector);
  void store_operand(const Xbyak::Xmm& value, const Lane& store, int vector, bool streaming);

 private:
  const TurnOperand& operand(size_t k) const { return k < in_.size() ? in_[k] : out_[k - in_.size()]; }
  Xbyak::RegExp address(size_t k, int vector) const;

  std::vector<TurnOperand> in_, out_;
  int64_t elements_;
};

/// The back expression for such a kernel, its loads numbered by their places in `in`.
Lanes numbered_back(const Problem& p, std::span<const int> in);

}  // namespace partita::jit
