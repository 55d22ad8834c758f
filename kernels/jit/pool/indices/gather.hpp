// SPDX-License-Identifier: Apache-2.0
// GatherKernel: machine code that makes rows of cells from the indices and gradients of the windows over them.
#pragma once

#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/pool/view.hpp"

namespace partita::jit {

/// Channels lie next to each other in all operands, or are one element.
struct GatherShape {
  std::vector<PoolView> in = {}, out = {};       ///< operands of the problem; in[1]: indices, s64 or s32
  std::vector<int> front_in = {}, back_in = {};  ///< those that are loaded
  Lanes front = {}, back = {};                   ///< front stores its result
  int64_t channels = 1;
  int64_t cell_step = 1;       ///< of indices, from cell to cell
  bool channels_step = false;  ///< indices differ from channel to channel
  bool stores = true;          ///< else indices are counted, and nothing else
  bool streaming = false;
};

/// One row of cells.
struct GatherCall {
  /// For each row of windows over the cells: where window 0 has its indices, then its operands of `front`.
  const std::byte* const* windows;
  const void* const* in;   ///< of the first cell: operands of `back`
  void* const* out;        ///< the same of the results
  const int32_t* columns;  ///< for each cell: the first window along x that may name it, and how many do
  const void* steps;       ///< where channels step: what to add for each, in the indices' type, in whole vectors
  int64_t name;            ///< index of the first cell's first channel
  int64_t window_rows, cells;
  int64_t found = 0;  ///< is increased by the indices that name one of the cells
};

class GatherKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  GatherKernel(Isa isa, const GatherShape& shape);
  void operator()(GatherCall& call) const { entry_(&call); }

 private:
  void emit_cells(Body& front, Body& back);
  void emit_group(Body& front, Body& back, int vectors, int last);
  void emit_window(Body& front, int vector, int count);
  void emit_cell(Body& back, int vector, int count);
  void compare(int vector, int count);
  void compare_wide(int vector, int count);
  void prefetch(const Xbyak::Reg64& base, const PoolView& view, int vector);
  void take(const Xbyak::Xmm& value, bool integer, int vector, int count);
  void load_operand(const Xbyak::Xmm& dst, const PoolView& view, const Xbyak::Reg64& base, int vector, int count);
  Xbyak::RegExp slot(size_t k) const { return rsp + 8 * static_cast<int>(k); }
  Xbyak::RegExp front_slot(size_t k) const { return slot(shape_.back_in.size() + shape_.out.size() + k); }
  Xbyak::Reg64 window_operand(size_t k);
  Xbyak::Ymm y(const Xbyak::Xmm& v) const { return Xbyak::Ymm(v.getIdx()); }

  GatherShape shape_;
  int together_;  // vectors of channels
  int counts_, name_, ones_;
  Xbyak::Label valid_;  // AVX2: ones in the lanes of the last vector
  void (*entry_)(GatherCall*) = nullptr;
};

}  // namespace partita::jit
