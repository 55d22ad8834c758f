// SPDX-License-Identifier: Apache-2.0
// AveragePeriodKernel: machine code for gradients of average poolings, channel-last, where no more than two windows
// along an axis lie over a cell. A window is read once, and the cells of its period are complete with it and the
// windows before: so rows are read and written at the same pace all the time. AVX-512.
#pragma once

#include "kernels/jit/pool/backward/period_code.hpp"

namespace partita::jit {

struct AveragePeriodCall {
  /// Addresses: those of place_period; the row's gradients, which replace those of the row of windows above; sums of
  /// the column of windows before, for each row of the period's cells; weights of the columns of windows.
  const void* const* addresses;
  float row_weight;  ///< of this row of windows
};

class AveragePeriodKernel : private PeriodCode {
 public:
  static bool fits(const PoolPlan& plan);
  /// Throws Xbyak::Error where there is no memory for code.
  AveragePeriodKernel(const PoolPlan& plan, const Problem& problem, const PeriodPart& rows, bool streaming);
  void operator()(const AveragePeriodCall& call) const { entry_(&call); }

  static size_t streams_of(const PoolPlan& plan);
  /// Of all channels of a window, in f32.
  static int64_t window_bytes(const PoolPlan& plan);

 private:
  void emit_row(Body& front, Body& back);
  void emit_period(Body& front, Body& back, const PeriodPart& columns);
  void emit_column(Body& front, const Group& group);
  void load_gradient(Body& front, const Group& group, int vector);
  void sum_rows(int64_t row, int vector);
  void keep_sums(const Group& group);
  void emit_cell(Body& back, const PeriodPart& columns, const Group& group, int64_t row, int64_t column);
  void add_columns(const Xbyak::Xmm& sum, const PeriodPart& columns, int64_t row, int64_t column, int vector);
  void store_cell(const Xbyak::Xmm& value, const Lane& lane, const Group& group, int64_t row, int64_t column,
                  int vector);
  /// Whether the window over the period's start, or the one above it, lies over the row of cells.
  bool covers(int64_t row, int64_t back) const { return rows_.window(back) && p_.tap_of(1, row, back) >= 0; }
  bool covered(int64_t row) const { return covers(row, 0) || covers(row, 1); }
  Xbyak::Xmm sums(int64_t row, int vector) const { return vec(kSums + static_cast<int>(row) * kTogether + vector); }
  Xbyak::RegExp sums_before(int64_t row, int vector);

  enum : int { kZero, kRowWeight, kWeight, kGradient, kFirst, kSums };  ///< vector registers
  static constexpr int kTogether = 4;                                   ///< vectors of channels
  size_t above_stream() const { return next_stream(); }
  size_t before_stream() const { return above_stream() + 1; }
  size_t weight_stream() const { return above_stream() + 2; }

  bool packs_;  // two vectors of 16-bit elements are stored at once
  void (*entry_)(const AveragePeriodCall*) = nullptr;
};

}  // namespace partita::jit
