// SPDX-License-Identifier: Apache-2.0
// RowMaxima: the largest number of each of some rows, compared as stored: elements of 16 bits as integers, so that a
// vector has twice as many.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

class RowMaxima : private Emitter {
 public:
  /// Whether rows of so many neighbouring elements (f32, bf16, f16) fill at least a vector.
  static bool fits(Isa isa, Dtype dtype, int64_t length);

  /// Rows lie `row_bytes` apart. Throws Xbyak::Error where there is no memory for code.
  RowMaxima(Isa isa, Dtype dtype, int64_t length, int64_t row_bytes);

  /// maxima[i] = the largest number of row i and what was there. Of a row with NaN it may be any number, or NaN.
  void operator()(const void* rows, float* maxima, int64_t count) const { entry_(rows, maxima, count); }

 private:
  static constexpr int kAccumulators = 4;

  bool words() const { return bytes_ == 2; }
  Xbyak::Xmm largest(int i) const { return vec(i); }
  /// Of words: the least as integers, which of negative floats is the largest.
  Xbyak::Xmm least(int i) const { return vec(kAccumulators + i); }
  void emit_row();
  void begin(int i, const Xbyak::RegExp& at);
  void take(int i, const Xbyak::RegExp& at);
  void fold(Xbyak::Xmm most, Xbyak::Xmm fewest, Xbyak::Xmm other_most, Xbyak::Xmm other_fewest);
  void fold_quarters();
  void emit_largest_float();
  void emit_largest_word();

  Dtype dtype_;
  int bytes_;
  int64_t length_;
  void (*entry_)(const void*, float*, int64_t) = nullptr;
};

}  // namespace partita::jit
