// SPDX-License-Identifier: Apache-2.0
// JoinedStores: rows that follow each other in memory, of any length, stored past the caches. Such stores must be whole
// aligned vectors, so those of a row are shifted in registers, and what a row leaves over waits for the next one.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Where a result's vectors go: this one, the one behind it, and in the end what makes no whole vector.
struct JoinedPlace {
  std::byte *current, *next, *rest;
};

class JoinedStores {
 public:
  static constexpr size_t kMostOutputs = 4;
  /// Fewer where registers are few.
  static size_t most_outputs(Isa isa) { return isa == Isa::avx512 ? kMostOutputs : 2; }

  /// Elements of `bytes` bytes that are stored at once: a cache line where the machine can shift such elements.
  static int64_t together(Isa isa, int64_t bytes) { return isa != Isa::avx512 ? 8 : bytes == 2 ? 32 : 16; }
  /// Vector registers needed.
  static int registers(const Emitter& e, size_t outputs) {
    return e.wide() ? 1 + 2 * static_cast<int>(outputs) : 2 + static_cast<int>(outputs);
  }
  /// For outputs of one size. Uses vector registers from `first` on, k7 and `pending`; `places` is where the
  /// JoinedPlaces are. The first outputs' places are kept in `pointers`, two for each.
  JoinedStores(Emitter& e, std::vector<Dtype> outputs, int first, Xbyak::Reg32 pending, Xbyak::RegExp places,
               std::vector<Xbyak::Reg64> pointers = {});

  /// `pending` holds how many elements before the first one are stored together with it.
  void emit_start();
  /// Vector `number` of a row (its parity is what counts), the last one with `count` lanes. Overwrites rax, rdx and the
  /// scratch registers.
  void emit_store(size_t output, const Xbyak::Xmm& value, bool integer, int64_t number, bool last, int count);
  /// The same of two vectors of a row, of elements of 16 bits in their order: the next `count` of them.
  void emit_words(size_t output, const Xbyak::Xmm& value, int count) { join(output, value, count); }
  /// After a row of so many elements.
  void emit_row_end(int64_t elements);
  void emit_finish();
  /// Behind the code.
  void emit_tables();

 private:
  Xbyak::Xmm order() const { return e_.vec(first_); }
  Xbyak::Xmm fresh() const { return e_.vec(first_ + 1); }  // AVX2: lanes that do not wait
  int own(size_t output) const { return first_ + registers(e_, output); }
  Xbyak::Xmm waiting(size_t output) const { return e_.vec(own(output)); }
  Xbyak::Xmm first_half(size_t output) const { return e_.vec(own(output) + 1); }
  bool halves() const { return together_ > e_.lanes(); }
  Xbyak::Address place(size_t output, size_t member) const {
    return e_.qword[places_ + static_cast<int>(output * sizeof(JoinedPlace) + member)];
  }
  void emit_order();
  bool in_registers(size_t output) const { return 2 * output + 1 < pointers_.size(); }
  void join(size_t output, const Xbyak::Xmm& value, int count);
  void emit_whole(size_t output);

  Emitter& e_;
  std::vector<Dtype> outputs_;
  int together_;
  std::vector<bool> integer_;
  int first_;
  Xbyak::Reg32 pending_;
  Xbyak::RegExp places_;
  std::vector<Xbyak::Reg64> pointers_;
  Xbyak::Label order_, fresh_;
};

/// The places of one call: vectors that the call shares with its neighbours are put aside, and their elements copied in
/// the end.
class JoinedCall {
 public:
  /// Addresses of the first elements, which are the same number of elements behind a whole vector; `together` as above.
  JoinedCall(std::span<void* const> out, int64_t element_bytes, int64_t together, int64_t elements);
  const JoinedPlace* places() const { return places_.data(); }
  int64_t pending() const { return pending_; }
  void finish() const;

 private:
  static constexpr size_t kVector = 64;
  std::span<void* const> out_;
  int64_t each_, together_, elements_, pending_;
  std::array<JoinedPlace, JoinedStores::kMostOutputs> places_;
  alignas(64) std::array<std::byte, JoinedStores::kMostOutputs * 2 * kVector> aside_;
};

}  // namespace partita::jit
