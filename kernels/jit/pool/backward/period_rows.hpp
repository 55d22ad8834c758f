// SPDX-License-Identifier: Apache-2.0
// Periods: one is a stride's worth of cells; the window that starts with it is the last one over its cells. So row
// after row of periods is read and stored, and what was found in the windows above is kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/jit/pool/plan.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// What exists of a period along one axis.
struct PeriodPart {
  int64_t first_tap = 0, end_tap = 0;    ///< of its window inside the source; empty: there is no such window
  int64_t first_cell = 0, end_cell = 0;  ///< of its cells
  int64_t first_back = 0, end_back = 0;  ///< windows so many periods before
  bool window() const { return first_tap < end_tap; }
  bool window(int64_t back) const { return first_back <= back && back < end_back; }
  bool cells() const { return first_cell < end_cell; }
  friend bool operator==(const PeriodPart&, const PeriodPart&) = default;
};

/// Windows over planes, with few enough taps to be spelled out.
bool has_periods(const PoolPlan& plan);
int64_t periods_of(const PoolPlan& plan, int axis);
PeriodPart period_part(const PoolPlan& plan, int axis, int64_t period);
/// Whether rows of periods are walked with vectors of channels.
bool has_channel_last_periods(const PoolPlan& plan);

/// Addresses at column 0 of a row of periods: operands of front; for each row of the period's cells those of back, then
/// the results. Rows that do not exist have some address that is never used. Returns how many.
size_t place_period(const PoolPlan& plan, const RunArgs& args, int64_t plane, int64_t period, const void** to);
size_t period_streams(const PoolPlan& plan);
inline constexpr size_t kMostPeriodStreams = 96;  ///< of a channel-last kernel, all counted

}  // namespace partita::jit
