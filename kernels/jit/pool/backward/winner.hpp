// SPDX-License-Identifier: Apache-2.0
// WinnerKernel: machine code that finds which tap of each window holds the maximum.
#pragma once

#include <vector>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Windows along x over prepared rows of the source (f32; the lowest value outside of it).
struct WinnerShape {
  bool channel_last = false;
  int64_t tap_rows = 1;  ///< rows of taps: kernel along z times kernel along y
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t cell_bytes = 4;    ///< channel-last: from cell to cell
  int64_t window_bytes = 4;  ///< channel-last: from window to window in the result
  int64_t vectors = 1;       ///< channel-last: of a cell
  /// What stands for each tap, row by row; empty: the taps' numbers.
  std::vector<int32_t> tap_names = {};
  int64_t bests_at = 0;  ///< from a window's winner to its maximum (f32); 0: maxima are not stored
};

/// Row r of `rows` is {for each row of taps the byte distance of its source row from `source`, number of the row's
/// first tap inside the source}. The result is the number (or name) of the first maximum among the taps, as s32; NaN
/// counts as maximum.
struct WinnerCall {
  const std::byte* source;  ///< of the first plane; the first window's first tap
  std::byte* winners;
  const int32_t* rows;
  const int32_t* first;  ///< of each window: its first tap inside the source along x
  int64_t row_count;
  int64_t windows;  ///< channel-first: vectors of windows
  int64_t winners_row_bytes;
  int64_t planes, source_plane_bytes, winners_plane_bytes;
};

class WinnerKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  WinnerKernel(Isa isa, const WinnerShape& shape);
  void operator()(const WinnerCall& call) const { entry_(&call); }
  int row_entries() const { return static_cast<int>(shape_.tap_rows) + 1; }

 private:
  void emit_planes();
  void emit_channels();
  void emit_along_row();
  void emit_windows(int count, int64_t apart);
  void load_taps(const Xbyak::Xmm& dst, int64_t at);

  WinnerShape shape_;
  Xbyak::Label order_;  // 0, stride, 2 * stride, ..; AVX-512 keeps them in scratch 2
  void (*entry_)(const WinnerCall*) = nullptr;
};

}  // namespace partita::jit
