// SPDX-License-Identifier: Apache-2.0
// IndexStoreKernel: machine code that turns the places of maxima in their windows into indices.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

struct IndexStoreShape {
  Dtype dtype = Dtype::s64;  ///< of indices: s64 or s32
  int64_t length = 1;        ///< of a row
  int64_t cell = 1;          ///< what a place counts
  bool streaming = false;    ///< rows start at multiples of 64 bytes; the caller fences
};

struct IndexStoreCall {
  const std::byte* from;  ///< s32 places of the first row
  std::byte* to;
  const void* steps;   ///< what is added to each element of a row, in the indices' type
  int64_t first;       ///< what is added to all elements of the first row
  int64_t first_step;  ///< more for each further row
  int64_t rows, from_bytes, to_bytes;
};

class IndexStoreKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  IndexStoreKernel(Isa isa, const IndexStoreShape& shape);
  void operator()(const IndexStoreCall& call) const { entry_(&call); }

 private:
  void emit_vector(int count);
  void emit_narrow(int count);
  void emit_wide(int count, int half);

  IndexStoreShape shape_;
  void (*entry_)(const IndexStoreCall*) = nullptr;
};

}  // namespace partita::jit
