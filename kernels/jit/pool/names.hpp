// SPDX-License-Identifier: Apache-2.0
// Indices become names of cells: their distance from some cell, in 32 bits.
// NamesKernel: machine code that does so with rows of indices.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

struct NamesCall {
  const std::byte* from;  ///< indices of the first row, next to each other
  std::byte* to;          ///< s32
  int64_t first;          ///< what the plane's first cell has
  int64_t rows, from_bytes, to_bytes;
};

/// Registers of load_names, all different; with AVX2 none of them scratch 0, which is used besides.
struct NameRegisters {
  int name;   ///< where names go
  int first;  ///< in every lane what they count from
  int other[2];
};
/// name = the `count` indices from `from` on, minus first; what does not fit 32 bits becomes -1 or what is as far from
/// zero as can be. Fetches what follows. Uses rax.
void load_names(Emitter& e, Dtype dtype, const NameRegisters& r, const Xbyak::RegExp& from, int count);

/// Index minus the plane's first one; what does not fit 32 bits becomes a number that no cell has.
class NamesKernel : private Emitter {
 public:
  /// For rows of `length` indices, s64 or s32. Throws Xbyak::Error where there is no memory for code.
  NamesKernel(Isa isa, Dtype dtype, int64_t length);
  void operator()(const NamesCall& call) const { entry_(&call); }

 private:
  void emit_vector(const Xbyak::RegExp& from, const Xbyak::RegExp& to, int count);

  Dtype dtype_;
  void (*entry_)(const NamesCall*) = nullptr;
};

}  // namespace partita::jit
