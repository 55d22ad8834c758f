// SPDX-License-Identifier: Apache-2.0
// Rows of periods: a period is a stride's worth of cells; the window that starts with it is the last one over its
// cells. So row after row of periods is read and stored, and what was found in the windows above is kept.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

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

/// Addresses at column 0 of a row of periods: operands of front; for each row of the period's cells those of back, then
/// the results. Rows that do not exist have some address that is never used. Returns how many.
size_t place_period(const PoolPlan& plan, const RunArgs& args, int64_t plane, int64_t period, const void** to);
size_t period_streams(const PoolPlan& plan);

/// The kernels of a plane's rows of periods; rows that are alike share them.
template <class Kernel>
class PeriodRows {
 public:
  /// make(part, streaming) gives a kernel.
  template <class Make>
  PeriodRows(const PoolPlan& p, bool streams, const Make& make) : reach_(p.reach(1)) {
    std::vector<std::pair<PeriodPart, Row>> made;
    for (int64_t period = 0; period < periods_of(p, 1); ++period) {
      const PeriodPart part = period_part(p, 1, period);
      auto known = std::ranges::find(made, part, &std::pair<PeriodPart, Row>::first);
      if (known == made.end()) {
        Row row{make(part, false), nullptr, nullptr};
        if (streams) row.streaming = make(part, true);
        PeriodPart alone = part;
        alone.end_cell = alone.first_cell;
        if (reach_ > 1 && part.window()) row.search = make(alone, false);
        made.emplace_back(part, std::move(row));
        known = made.end() - 1;
      }
      rows_.push_back(known->second);
    }
  }

  int64_t count() const { return std::ssize(rows_); }
  bool streams() const { return !rows_.empty() && rows_[0].streaming; }

  /// Rows [begin, end) of all planes, in order: store(kernel, plane, period, number of the row) each, and before the
  /// first one search(kernel, plane, period) for those above it whose windows it needs.
  template <class Search, class Store>
  void run(int64_t begin, int64_t end, bool streaming, const Search& search, const Store& store) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / count(), period = i % count();
      for (int64_t above = std::max<int64_t>(0, period - reach_ + 1); i == begin && above < period; ++above)
        if (const auto& kernel = rows_[static_cast<size_t>(above)].search) search(*kernel, plane, above);
      const Row& row = rows_[static_cast<size_t>(period)];
      store(streaming && row.streaming ? *row.streaming : *row.plain, plane, period, i);
    }
  }

 private:
  struct Row {
    std::shared_ptr<const Kernel> plain, streaming, search;  // search: of windows alone, stores nothing
  };
  int64_t reach_;
  std::vector<Row> rows_;
};

}  // namespace partita::jit
