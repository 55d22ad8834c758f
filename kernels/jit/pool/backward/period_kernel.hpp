// SPDX-License-Identifier: Apache-2.0
// PeriodKernel: machine code for gradients of maximum poolings whose windows overlap, channel-last. A period is a
// stride's worth of cells; the window that starts with it is the last one over its cells. So each window is searched
// once, and then the cells of its period, which no later window reads, are complete and stored.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/jit/pool/backward/choices.hpp"
#include "kernels/jit/pool/backward/period_code.hpp"

namespace partita::jit {

struct PeriodCall {
  /// Addresses at column 0: rows of taps of the source; operands of front; for each row of the period's cells those of
  /// back, then the results; found windows, of this row of periods and of those before it.
  const void* const* addresses;
};

/// A row of periods. What is found in a window is kept: for each channel the number of the winning tap, then for each
/// the gradient, `window_bytes` together.
class PeriodKernel : private PeriodCode {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  PeriodKernel(Isa isa, const PoolPlan& plan, const Problem& problem, const PeriodPart& rows, bool streaming);
  void operator()(const PeriodCall& call) const { entry_(&call); }

  static size_t streams_of(const PoolPlan& plan);
  static int64_t window_bytes(const PoolPlan& plan, Isa isa);

 private:
  void add_streams();
  void emit_period(Body& front, Body& back, const PeriodPart& columns);
  void emit_window(Body& front, const PeriodPart& columns, const Group& group);
  void find_period_winners(const PeriodPart& columns, const Group& group);
  void keep_window(int vector);
  bool keeps_words(const Problem& problem) const;
  /// Whether the group's windows are kept as words, in as much memory as the winners of others take.
  bool in_words(const Group& group) const { return choices_ && group.vectors == 2 && group.last == lanes(); }
  void emit_words(const PeriodPart& columns, const Group& group);
  void emit_cell_of_words(const PeriodPart& columns, int64_t row, int64_t column);
  Taps taps_of(const PeriodPart& columns) const;
  Xbyak::RegExp place_of(int64_t row, int64_t tap);
  using EachWindow = std::function<void(int64_t back_y, int64_t back_x, int64_t tap)>;
  void each_window(const PeriodPart& columns, int64_t row, int64_t column, const EachWindow& each) const;
  void emit_cell(Body& back, const PeriodPart& columns, const Group& group, int64_t row, int64_t column, int vector);
  void add_windows(const Xbyak::Xmm& sum, const PeriodPart& columns, int64_t row, int64_t column, int vector);
  size_t kept_stream(int64_t back) const { return next_stream() + static_cast<size_t>(back); }

  static constexpr int kWordsBytes = 2 * kWords;

  bool cell_by_cell_;                               // AVX2 has no registers for the windows of a whole line of channels
  int together_;                                    // vectors of channels
  int winners_, gradients_;                         // first registers
  int64_t half_;                                    // bytes of the winners of a window, which the gradients follow
  std::optional<std::vector<PoolChoice>> choices_;  // of results that are chosen as elements of 16 bits
  void (*entry_)(const PeriodCall*) = nullptr;
};

}  // namespace partita::jit
