// SPDX-License-Identifier: Apache-2.0
// HalfMaxima: a stencil of maxima of 16-bit floats that are stored as they are: they are compared as integers.
#pragma once

#include "kernels/jit/taps/stencil.hpp"

namespace partita::jit {

/// With AVX-512 alone. A float's place among all floats of its type is an unsigned integer: minus infinity's is 0,
/// those of NaN, of either sign, are above infinity's. Twice as many as of f32 go in a vector, and none is converted.
class HalfMaxima : private Emitter {
 public:
  /// Of a stencil that puts its maxima through `back`. Results that go past the caches are faster converted: then loads
  /// and stores of half lines keep more of memory under way.
  static bool fits(Isa isa, const StencilShape& shape, const Expr& back);
  /// Throws Xbyak::Error where there is no memory for code.
  explicit HalfMaxima(const StencilShape& shape);
  void operator()(const StencilCall& call) const { entry_(&call); }

 private:
  void emit_row();
  void emit_vectors(int count, bool partial);
  void order(const Xbyak::Zmm& to, const Xbyak::Zmm& from);

  StencilShape shape_;
  int together_;  ///< vectors_of_group
  void (*entry_)(const StencilCall*) = nullptr;
};

}  // namespace partita::jit
