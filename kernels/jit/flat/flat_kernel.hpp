// SPDX-License-Identifier: Apache-2.0
// FlatKernel: machine code that evaluates an expression over rows of elements.
#pragma once

#include <functional>
#include <vector>

#include "kernels/jit/flat/row_emitter.hpp"

namespace partita::jit {

class FlatKernel : private RowEmitter {
 public:
  using RowEmitter::kMaxRowFolds;
  using RowEmitter::operator();

  /// Throws Xbyak::Error where there is no memory for code.
  FlatKernel(Isa isa, const Lanes& lanes, const RowShape& shape, int inner_axis);

 private:
  void emit_held(const std::function<void(size_t output, const Xbyak::RegExp& at, int count)>& move);
  void next_rows(size_t k, int rows);
  void next_group(size_t k);
  void move_on(size_t k, int64_t bytes);
  void emit_rows_together(Body& body);
  void emit_joined_row(Body& body);
  std::vector<Dtype> joined_types() const;
};

}  // namespace partita::jit
