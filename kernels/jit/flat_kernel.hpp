// SPDX-License-Identifier: Apache-2.0
// FlatKernel: machine code that evaluates an expression over rows of elements.
#pragma once

#include <vector>

#include "kernels/jit/body.hpp"

namespace partita::jit {

/// One operand of the rows: how far it moves from element to element (0 or 1) and, in bytes, from row to row.
struct RowOperand {
  Dtype dtype;
  bool steps;
  int64_t row_bytes;
};

struct RowShape {
  int64_t length;  ///< elements of a row
  std::vector<RowOperand> in, out;
  bool streaming = false;  ///< whole vectors are stored past the caches; rows start at multiples of 64 bytes then
};

/// Arguments of a call: addresses of the first row's first elements, the number of rows, and the coordinates that index
/// operations read (of the first element; only the innermost advances).
struct RowCall {
  const void* const* in;
  void* const* out;
  const int32_t* coordinates;
  int64_t rows;
};

class FlatKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  FlatKernel(Isa isa, const Lanes& lanes, const RowShape& shape, int inner_axis);
  void operator()(const RowCall& call) const { entry_(&call); }

 private:
  void emit_row(Body& body, const RowShape& shape, int inner_axis);
  void emit_vectors(Body& body, const RowShape& shape, int inner_axis, int count);

  void (*entry_)(const RowCall*) = nullptr;
  int pointers_ = 0;  // operands' addresses on the stack
};

}  // namespace partita::jit
