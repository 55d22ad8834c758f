// SPDX-License-Identifier: Apache-2.0
// RowEmitter: what kernels share that evaluate an expression over a row of elements: where operands are, accumulators,
// whole vectors of the row and the partial one at its end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/joined_stores.hpp"

namespace partita::jit {

/// Of an output of RowShape::joined whose vectors are operands of their own: which vector of its row it is.
struct JoinedVector {
  int number;
  bool last;              ///< of the row
  bool ends_row = false;  ///< nor does one of another output come behind it
};

/// Which elements of twice as many a vector has; an operation that folds them all does not ask for their order.
enum class EveryOther : uint8_t { no, even, odd };

/// One operand of the rows: how far it moves from element to element (0 or 1) and, in bytes, from row to row.
/// An output with a fold is f32 and is added to (or multiplied, ..) in memory: element by element where it steps, else
/// all elements of a row are folded into one number.
struct RowOperand {
  Dtype dtype;
  bool steps;
  int64_t row_bytes;
  Fold fold = Fold::none;
  Fetching fetching = {};   ///< of an input: of each vector, for what is read next
  bool kept = false;        ///< of an output: it is read again soon, so it is never stored past the caches
  int64_t group_bytes = 0;  ///< of grouped rows: from group to group
  /// Not -1: this one lies `behind` bytes behind operand number `place`, which has the address (see SideBySide).
  int place = -1, behind = 0;
  EveryOther every_other = EveryOther::no;  ///< of an input of bf16
  int count = 0;                            ///< not 0: of each vector so many elements
  /// Of 16-bit elements: what is loaded or stored are those of two whole vectors (LaneOp::unpack, pack).
  bool packed = false;
  std::optional<JoinedVector> joined = {};
  /// Of an input whose addresses are numbers (ExprOp::uniform): how it lies over the loop.
  std::shared_ptr<const TensorDesc> numbers = nullptr;
};

/// The operand as expansion asks for it.
TensorDesc described(const RowOperand& operand);

struct RowShape {
  int64_t length;  ///< elements of a row
  std::vector<RowOperand> in = {}, out = {};
  Fetching fetching = {};  ///< of each whole vector of all inputs, but those that fetch in turns
  bool streaming = false;  ///< whole vectors are stored past the caches; those rows start at multiples of 64 bytes then
  /// With `streaming`: rows of all outputs follow each other, wherever they start, and have elements of one size.
  bool joined = false;
  int64_t group = 1;   ///< not 1: rows are those of groups of so many, which lie as `group_bytes` of the operands say
  int vectors = 1;     ///< so many vectors of a row at once; where more than one, rows are whole multiples of them
  bool fenced = true;  ///< a streaming call ends with a fence; without it the caller fences before others read
};

/// Among joined vectors: this one, the first of the first row, has the address of all.
inline bool begins_joined(const RowOperand& o) { return o.joined && o.place < 0; }

/// Arguments of a call: addresses of the first row's first elements, the number of rows, and the coordinates that index
/// operations read (of the first element; only the innermost advances).
struct RowCall {
  const void* const* in;
  void* const* out;
  const int32_t* coordinates;
  int64_t rows;                         ///< or groups of them
  const JoinedPlace* joined = nullptr;  ///< joined rows: of each output
  int64_t pending = 0;                  ///< the same: elements stored together with the first one
};

/// The code uses rdi for the call, rsi and rdx for addresses for a moment, rcx for the element in the row. Operands'
/// addresses lie in slots of 8 bytes from rsp on, or in registers.
class RowEmitter : protected Emitter {
 public:
  /// Outputs that fold whole rows, at the most: each has a register.
  static constexpr int kMaxRowFolds = 4;

  void operator()(const RowCall& call) const { entry_(&call); }

 protected:
  RowEmitter(Isa isa, int inner_axis) : Emitter(isa), inner_axis_(inner_axis) {}

  /// From here on rows of `shape` are emitted, of so many operations, whose addresses begin in slot `first_slot`; their
  /// accumulators take the last registers, where `some_rows` those of some rows at once. Returns how many registers
  /// are left.
  int begin_rows(const RowShape& shape, size_t operations, int first_slot, bool some_rows);
  /// Gives registers to the operands that every vector needs, then to `pointers` of the caller's, then to operands that
  /// a row needs once; where there are too few, to the first ones. r15 is not among them where rows are joined.
  std::vector<Xbyak::Reg64> assign_addresses(size_t pointers = 0);
  bool has_address(size_t k) const;
  bool joins_vectors() const;
  /// The operand repeats one element along the row.
  bool repeats(int operand) const { return !shape_.in[static_cast<size_t>(operand)].steps; }
  const RowOperand& operand(size_t k) const;
  Xbyak::RegExp address(size_t k);
  Xbyak::Address slot(size_t k) const { return qword[rsp + 8 * (first_slot_ + static_cast<int>(k))]; }
  int lanes_of(int vector) const;
  bool folds_row(size_t output) const;
  bool sums_up(size_t output) const;
  Xbyak::Xmm accumulator(size_t output) const { return vec(accumulators_[output] + turn_ + passed_ % row_parts_); }
  /// Once, behind all code: from here on it can be called.
  void finish_rows() { entry_ = reinterpret_cast<void (*)(const RowCall*)>(reinterpret_cast<uintptr_t>(finish())); }
  /// A row.
  void emit_row(Body& body);
  /// A row without the ends of its folds.
  void emit_elements(Body& body);
  BodyHooks hooks_for(int count);

  RowShape shape_{.length = 0};
  std::vector<std::optional<Xbyak::Reg64>> addresses_;  // of inputs, then outputs
  std::vector<int> accumulators_;       // first register of each output that folds into registers; -1: none
  std::optional<JoinedStores> joined_;  // of results that are joined
  int rows_together_ = 1;               // registers of each: of rows whose numbers are folded at once
  int row_parts_ = 1;                   // the same: of a long row, whose vectors are folded in turns
  int held_ = 0;    // registers of each: vectors of the row that all rows are added to; 0: it is in memory
  int turn_ = 0;    // the row or vector of those that is emitted
  int passed_ = 0;  // vectors of this pass of the loop before the one that is emitted

 private:
  int rows_together(int folds) const;
  int row_parts(int folds, size_t operations) const;
  int held_vectors(size_t operations) const;
  int vectors_together() const;
  Xbyak::RegExp elements(size_t k);
  Xbyak::RegExp next_elements(int input, int& count);
  size_t joined_result(size_t output) const;
  void load_operand(Xbyak::Xmm dst, int operand, int count);
  void load_bits(Xbyak::Xmm dst, Xbyak::Xmm places, int operand, int count);
  void fetch(const RowOperand& o, const Xbyak::RegExp& from, int count);
  void store_operand(Xbyak::Xmm value, const Lane& store, int count);
  void load_index(Xbyak::Xmm dst, int axis);
  void load_number(Xbyak::Xmm dst, int operand);

  int inner_axis_;
  int first_slot_ = 0;
  void (*entry_)(const RowCall*) = nullptr;
};

}  // namespace partita::jit
