// SPDX-License-Identifier: Apache-2.0
// Deinterleave: rows of elements taken apart into their phases, so that every s-th element lies beside the next one.
#pragma once

#include <vector>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Rows of `length` elements; place j of phase p of a row is its element j * stride + p, as f32.
struct InterleavedRows {
  Dtype dtype = Dtype::f32;  ///< a type that Emitter::loads and that is not an integer of 32 bits
  int64_t length = 0;
  int64_t stride = 2;           ///< at least 2
  std::vector<int64_t> phases;  ///< the wanted ones, ascending, each less than stride; the others are not stored
  int64_t row_bytes = 0;        ///< from one row to the next
  int64_t places_bytes = 0;     ///< from a row's places to those of the next row, in every phase
  int64_t phase_bytes = 0;      ///< from the places of phase p to those of phase p + 1
};

/// Machine code; may be called from several threads at once. Nothing outside the named elements is read or written.
class Deinterleave : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  Deinterleave(Isa isa, const InterleavedRows& rows);
  /// `to` is the address of phase 0; rows > 0.
  void operator()(const void* from, float* to, int64_t rows) const { entry_(from, to, rows); }

 private:
  void emit_group(int64_t elements);
  void gather_wide(int64_t phase, int64_t vectors);
  void gather_narrow(int64_t phase, int64_t vectors);
  void emit_singly(int64_t elements);
  unsigned lanes_from(int64_t phase, int64_t vector) const;
  Xbyak::Xmm source(int64_t vector) const { return vec(static_cast<int>(vector)); }

  InterleavedRows rows_;
  std::vector<Xbyak::Label> indices_;  // of each phase: the lane that each place comes from
  void (*entry_)(const void*, float*, int64_t) = nullptr;
};

}  // namespace partita::jit
