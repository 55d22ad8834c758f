// SPDX-License-Identifier: Apache-2.0
// RowGatherKernel: machine code that makes rows of cells along x from prepared rows of names and gradients.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

struct RowGatherShape {
  int64_t cells = 1;         ///< of a row
  int64_t gradients_at = 0;  ///< bytes from a row of names (s32) to its gradients (f32)
  int64_t row_entries = 2;   ///< of the table `rows`, for each row
};

/// A lane of a vector of cells has its first window at `bases` + its number in `orders`, and the others behind it.
struct RowGatherCall {
  const std::byte* windows;
  std::byte* cells;     ///< f32, row behind row; up to a vector behind the last row is overwritten
  const int32_t* rows;  ///< of each: name of its place 0, rows of windows over it, their byte distances from `windows`
  const int32_t* numbers;  ///< of each cell what its name adds to the row's, in whole vectors
  const int32_t* orders;   ///< the same of windows
  const int32_t* bases;    ///< of each vector of cells: byte distance of its first lane's first window in a row
  int64_t row_count;
  int64_t along;      ///< windows over a cell along x
  int64_t found = 0;  ///< is increased by the windows that name a cell
};

class RowGatherKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  RowGatherKernel(Isa isa, const RowGatherShape& shape);
  void operator()(RowGatherCall& call) const { entry_(&call); }

 private:
  void emit_row();
  void emit_group(int vectors);
  void emit_windows(int vector);
  Xbyak::Xmm sum(int v) const { return vec(v); }
  Xbyak::Xmm name(int v) const { return vec(together_ + v); }
  Xbyak::Xmm order(int v) const { return vec(2 * together_ + v); }

  RowGatherShape shape_;
  int together_;
  int counts_, ones_, row_name_;
  void (*entry_)(RowGatherCall*) = nullptr;
};

}  // namespace partita::jit
