// SPDX-License-Identifier: Apache-2.0
// NamesKernel: machine code that turns rows of indices into the names of cells in their plane.
#pragma once

#include "kernels/jit/emitter.hpp"

namespace partita::jit {

struct NamesCall {
  const std::byte* from;  ///< indices of the first row, next to each other
  std::byte* to;          ///< s32
  int64_t first;          ///< what the plane's first cell has
  int64_t rows, from_bytes, to_bytes;
};

/// Index minus the plane's first one; what does not fit 32 bits becomes a number that no cell has.
class NamesKernel : private Emitter {
 public:
  /// For rows of `length` indices, s64 or s32. Throws Xbyak::Error where there is no memory for code.
  NamesKernel(Isa isa, Dtype dtype, int64_t length);
  void operator()(const NamesCall& call) const { entry_(&call); }

 private:
  void emit_vector(const Xbyak::RegExp& from, const Xbyak::RegExp& to, int count);
  void emit_narrow(const Xbyak::RegExp& from, int count);

  bool s64_;
  void (*entry_)(const NamesCall*) = nullptr;
};

}  // namespace partita::jit
