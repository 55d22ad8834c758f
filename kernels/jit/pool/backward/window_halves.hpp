// SPDX-License-Identifier: Apache-2.0
// WindowHalvesKernel: WindowKernel's work for elements of 16 bits that are never computed with: maxima are found by
// comparing integers, and each cell gets its window's gradient or zero. 32 elements are a vector. Sums are made of what
// a window's only winner got, once a window. AVX-512 alone.
#pragma once

#include <vector>

#include "kernels/jit/pool/backward/choices.hpp"
#include "kernels/jit/pool/backward/window_kernel.hpp"

namespace partita::jit {

class WindowHalvesKernel : private PoolCode {
 public:
  static bool fits(const PoolPlan& plan, const Problem& problem, Isa isa);
  /// Only where it fits. Throws Xbyak::Error where there is no memory for code.
  WindowHalvesKernel(const PoolPlan& plan, const Problem& problem, const WindowStores& stores);
  void operator()(const WindowCall& call) const { entry_(&call); }
  /// Channel-first: rows of windows whose rows of cells, following each other, are whole cache lines where one alone is
  /// none. Past the caches a kernel steps over so many at once. 0: it stores row by row.
  static int64_t rows_together(const PoolPlan& plan);

 private:
  /// A vector of cells: what it holds, and where.
  struct Cells {
    Xbyak::Zmm winners, gradients;  ///< of each cell's window
    Xbyak::Zmm kept;                ///< what they get, where it is folded
    std::vector<int32_t> taps;      ///< that each cell is
    int64_t row, number;            ///< of the streams, and of the vector behind the place of each (or of the cell)
    int count;
  };
  /// A line of cells: of each its window's place among those that are kept, row by row in whole vectors.
  struct Line {
    std::vector<int32_t> windows, taps;  ///< taps as in the first slice
    int64_t first = 0, second = -1;      ///< vectors of what is kept; -1: one is enough
  };
  static std::vector<Line> lines_of(const PoolPlan& plan, int64_t rows);
  void emit_steps_of_lines();
  void emit_line(const Line& line, int64_t number);
  void emit_steps();
  void find_winners(int count);
  void search(int count, bool has_nan);
  void load_source(const Xbyak::Zmm& words, int64_t row, int64_t cell, int count, bool has_nan);
  void pick_tap(int64_t tap);
  void load_gradients(int count);
  void spread();
  Cells row_of_cells(int64_t row, int64_t cell, int count) const;
  void emit_cells(const Cells& cells);
  void choose(const PoolChoice& condition, const Cells& cells);
  void add_folds(int count);
  void add_folds_along_x(int count);
  /// Of the result that is folded, from rdx on.
  Xbyak::RegExp fold_slot();
  Xbyak::RegExp cells_at(const PoolOperand& o, size_t stream, int64_t cell);
  int cells_of(int count, int64_t cell) const;
  /// What the windows' winners got, of each vector of cells along x.
  Xbyak::Zmm kept(int64_t cell) const;
  bool spreads() const { return along_x_ && width() > 1; }
  int64_t width() const { return p_.g.kernel[2]; }
  int64_t tap_number(int64_t row, int64_t tap) const { return row * width() + tap; }
  size_t gradient_stream() const { return static_cast<size_t>(p_.tap_rows()); }
  size_t back_stream(int64_t row, size_t k) const {
    return gradient_stream() + 1 + static_cast<size_t>(row) * p_.back_in.size() + k;
  }
  size_t out_stream(int64_t row, size_t k) const {
    return back_stream(p_.tap_rows(), 0) + static_cast<size_t>(row) * p_.out.size() + k;
  }

  /// Vectors of windows of a row.
  static int64_t groups(const PoolPlan& plan) { return (plan.g.dst[2] + kWords - 1) / kWords; }
  int64_t kept_windows() const { return rows_together_ * groups(p_); }

  /// Registers: of the search the best tap, a tap, the least one, and for a moment a number; then what it finds, and
  /// constants; the source cells of a row, winners and gradients of each vector of cells, and what these get.
  static inline const Xbyak::Zmm kLargest{0}, kNext{1}, kLeast{2}, kNumber{3}, kWinner{4}, kGradient{5}, kSigns{6},
      kMinusOne{7}, kInfinity{8}, kNan{9};
  static constexpr int kCells = 12, kWinners = 16, kGradients = 20, kKept = 24;

  bool streaming_, along_x_;
  int64_t rows_together_;  // of windows that are stored in lines; 0: rows are stored alone
  std::vector<PoolChoice> results_;
  void (*entry_)(const WindowCall*) = nullptr;
};

}  // namespace partita::jit
