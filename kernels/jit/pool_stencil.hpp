// SPDX-License-Identifier: Apache-2.0
// PoolStencil: machine code that combines the taps of windows along folded rows and evaluates an expression on each
// result.
#pragma once

#include <vector>

#include "kernels/jit/body.hpp"
#include "kernels/jit/flat_kernel.hpp"

namespace partita::jit {

/// Folded rows of f32; a result's tap lies `taps[t]` floats behind its first place, and the places of one result and
/// the next are one float apart, or two.
struct StencilShape {
  RowShape rows;              ///< of the results; operands that the expression loads and stores
  Fold fold = Fold::none;     ///< sum or max
  std::vector<int64_t> taps;  ///< ascending
  bool every_second = false;
  int64_t row_bytes = 0;  ///< from one folded row to the next
};

/// Addresses as in RowCall; whole vectors are read from the folded rows, up to kOverread floats behind the last one.
struct StencilCall {
  const float* folded;
  const void* const* in;
  void* const* out;
  int64_t rows;
};

class PoolStencil : private Emitter {
 public:
  static constexpr int64_t kOverread = 32;

  /// `lanes`: its skeleton value is the combination. Throws Xbyak::Error where there is no memory for code.
  PoolStencil(Isa isa, const Lanes& lanes, const StencilShape& shape);
  void operator()(const StencilCall& call) const { entry_(&call); }

 private:
  void emit_row(Body& body);
  BodyHooks hooks_for(int count);
  void combine(Xbyak::Xmm sum);
  void combine_pairs(Xbyak::Xmm sum);
  void take(Xbyak::Xmm sum, Xbyak::Xmm part, bool& first);
  void pick_second(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, bool odd);

  StencilShape shape_;
  int temporaries_;  // first of the registers that combinations use
  Xbyak::Label even_, odd_;
  void (*entry_)(const StencilCall*) = nullptr;
};

}  // namespace partita::jit
