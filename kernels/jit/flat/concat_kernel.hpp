// SPDX-License-Identifier: Apache-2.0
// ConcatKernel: machine code that copies rows of bytes, each of which is one piece of every source.
#pragma once

#include <vector>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

struct ConcatShape {
  struct Piece {
    int64_t bytes;    ///< not 0; of a row less than 2 GiB
    int64_t src_row;  ///< bytes from the piece to that of the next row
  };
  std::vector<Piece> pieces;  ///< in the order of a result's row
  int64_t dst_row;            ///< bytes from one row of the result to the next
  /// Rows go past the caches; pieces are whole vectors, and the result's rows begin at vectors. The caller fences.
  bool streaming = false;
  Fetching fetching = {};  ///< of each vector of a source; not in turns
};

class ConcatKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  ConcatKernel(Isa isa, const ConcatShape& shape);
  /// Copies so many rows, at least one. `src` has the address of each source's piece of the first row, and is left with
  /// other ones. Nothing is read or written but the pieces.
  void operator()(const void** src, void* dst, int64_t rows) const { entry_(src, dst, rows); }

 private:
  void emit_row(const ConcatShape& shape);

  void (*entry_)(const void**, void*, int64_t) = nullptr;
};

}  // namespace partita::jit
