// SPDX-License-Identifier: Apache-2.0
// PlanePeriodKernel: machine code for gradients of maximum poolings whose windows may overlap, channel-first: a plane,
// one row of periods after the other (pool_period_kernel.hpp). A row of windows is searched straight from the source
// with vectors along x, or has indices; then the rows of cells that it completes are stored.
#pragma once

#include "kernels/jit/held_folds.hpp"
#include "kernels/jit/pool_period_kernel.hpp"

namespace partita::jit {

struct PlanePeriodCall {
  /// Addresses of the plane's first elements: source, or indices and the index of the first window's first tap;
  /// operands of front; those of back; results; then the rows that keep what is found, which are those of the first
  /// window.
  const void* const* addresses;
  int32_t* counts = nullptr;  ///< from indices, of each lane: to how many cells' windows this adds
};

/// A row keeps the winners' tap numbers, or names: how far their indices are from those of the windows' first taps;
/// `gradients_at` bytes behind them lie the gradients. Margins of windows that do not exist have winners of -1 before
/// the call, and stay so.
class PlanePeriodKernel : private PoolCode {
 public:
  /// `piece`: bytes that streamed stores write at once, 0: nothing is streamed. Throws Xbyak::Error where there is no
  /// memory for code.
  PlanePeriodKernel(Isa isa, const PoolPlan& plan, const Problem& problem, int piece);
  void operator()(const PlanePeriodCall& call) const { entry_(&call); }

  static size_t streams_of(const PoolPlan& plan);
  /// Windows that a row keeps before the first one, and all of them; multiples of a vector.
  static int64_t windows_before(const PoolPlan& plan, Isa isa);
  static int64_t windows_of_row(const PoolPlan& plan, Isa isa);

  using PoolCode::kMostStride;
  static constexpr int64_t kMostStrideFromIndices = kMostStride - 1;  ///< a register counts

 private:
  void add_streams();
  void emit_planes(Body& front, Body& back);
  HeldFolds::Place slots();
  void rotate_kept();
  void emit_search(Body& front, const PeriodPart& rows);
  void search_group(Body& front, const PeriodPart& rows, int64_t first);
  void load_winners(const Xbyak::Xmm& winner, int count);
  std::vector<int32_t> names(int64_t y, int64_t x, int64_t phase, int64_t cells) const;
  void emit_cells(Body& back, const PeriodPart& rows);
  void emit_group(Body& back, const PeriodPart& rows, int64_t row, int64_t cells);
  void add_windows(int64_t back_y, int64_t y, int64_t cells, std::vector<bool>& any);
  void emit_vector(Body& back, int64_t row, int64_t vector, int count);
  Xbyak::RegExp cell_at(const PoolOperand& o, int64_t row, int64_t cell) const;
  int64_t stride() const { return p_.g.strides[2]; }
  bool from_indices() const { return p_.indices >= 0; }
  Xbyak::Xmm counts() const { return vec(static_cast<int>(kMostStrideFromIndices)); }
  size_t front_stream(size_t k) const { return (from_indices() ? 2 : 1) + k; }
  size_t back_stream(size_t k) const { return front_stream(p_.front_in.size()) + k; }
  size_t out_stream(size_t k) const { return back_stream(p_.back_in.size()) + k; }
  size_t kept_stream(int64_t back) const { return out_stream(p_.out.size()) + static_cast<size_t>(back); }

  bool streaming_;
  int64_t gradients_at_;
  HeldFolds folds_;  // of a call
  void (*entry_)(const PlanePeriodCall*) = nullptr;
};

}  // namespace partita::jit
