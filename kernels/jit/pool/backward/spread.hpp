// SPDX-License-Identifier: Apache-2.0
// SpreadKernel: machine code that turns prepared rows of windows into rows of cells.
#pragma once

#include <array>
#include <vector>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// Memory that is asked for while cells are made: so many bytes each period, `written`: to be overwritten.
struct Touch {
  int64_t bytes = 0;
  bool written = false;
};
constexpr size_t kMaxTouches = 6;

/// How cells lie to windows along x, and how both lie in scratch memory (f32).
struct SpreadShape {
  bool maximum = false;
  bool channel_last = false;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t lead = 0;          ///< cells of the first period that lie before the first cell
  int64_t reach = 1;         ///< windows over a cell of a period at the most
  int64_t window_bytes = 4;  ///< channel-last: from window to window
  int64_t cell_bytes = 4;    ///< channel-last: from cell to cell
  /// Channel-last: of a cell. Channel-first: of cells made in one step; whole periods where a row has several steps.
  int64_t vectors = 1;
  int64_t winners_at = 0;              ///< maximum: from a row of gradients to its winning taps (s32)
  std::vector<int> cover_counts = {};  ///< rows of windows over a row of cells: the numbers that occur
  std::vector<Touch> touches = {};     ///< at most kMaxTouches
};

/// Row r of `rows` is {covers, then for each: byte distance of the row of windows from `windows`, 4 * its first tap}.
/// Whole periods are stored (channel-first: whole steps): behind the last cell other things are
/// overwritten, so rows are made in ascending order.
struct SpreadCall {
  const std::byte* windows;  ///< of the first plane; window `reach` - 1 before the first cell's last one
  std::byte* cells;
  const int32_t* rows;
  const int32_t* numbers;  ///< maximum: 0, 1, 2, ..
  int64_t row_count;
  int64_t periods;  ///< channel-first: steps
  int64_t cells_row_bytes;
  int64_t planes, windows_plane_bytes, cells_plane_bytes;
  std::array<const std::byte*, kMaxTouches> touched = {};  ///< where the touches start; any address will do
};

class SpreadKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  SpreadKernel(Isa isa, const SpreadShape& shape);
  void operator()(const SpreadCall& call) const { entry_(&call); }
  /// Elements of a row of the table.
  int row_entries() const { return 1 + 2 * most_covers_; }

  /// Channel-first strides for which all lanes of a vector are the same tap of their windows; then a step is `stride`
  /// vectors or a multiple of them.
  static constexpr int64_t kPhases = 2;
  static constexpr int64_t kMostVectors = 8;  ///< of a step

 private:
  using Pattern = std::vector<int32_t>;
  int64_t tap_of(int64_t cell, int64_t back) const;
  int64_t window_of(int64_t cell) const { return (shape_.lead + cell) / shape_.stride; }
  void emit_planes();
  void emit_touches();
  void emit_row(int covers);
  void emit_channels(int covers);
  void emit_cell(int covers, int64_t cell, int count);
  void emit_along_row(int covers);
  void emit_phases(int covers);
  void interleave(const Xbyak::Xmm& even, const Xbyak::Xmm& odd, int64_t at);
  void emit_vector(int64_t j, const Xbyak::Xmm& sum, bool& started);
  void emit_winner_vector(int64_t j, const Xbyak::Xmm& sum);
  void add_channels(const Xbyak::Xmm& sum, int64_t tap, int64_t at, bool& started);
  Xbyak::Ymm perm(const Xbyak::Xmm& v) const;
  int64_t bytes() const { return vector_bytes(); }

  SpreadShape shape_;
  int most_covers_ = 0;
  void (*entry_)(const SpreadCall*) = nullptr;
};

}  // namespace partita::jit
