// SPDX-License-Identifier: Apache-2.0
// Code of rows of periods: rcx first channel of the group, r8 periods left, rax and rdx for a moment. Vectors: the best
// tap, a tap, the winners' numbers, the gradients, then those of front and of back.
#include "kernels/jit/pool/backward/period_kernel.hpp"

#include <algorithm>

#include "kernels/jit/pool/channel_groups.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

}  // namespace

size_t PeriodKernel::streams_of(const PoolPlan& p) {
  return static_cast<size_t>(p.g.kernel[1] + p.reach(1)) + period_streams(p);
}

int64_t PeriodKernel::window_bytes(const PoolPlan& p, Isa isa) {
  const int64_t lanes = lanes_of(isa);
  return rounded_up(p.g.channels, lanes) * 8;
}

PeriodKernel::PeriodKernel(Isa isa, const PoolPlan& plan, const Problem& problem, const PeriodPart& rows,
                           bool streaming)
    : PeriodCode(isa, plan, rows, streaming, static_cast<size_t>(plan.g.kernel[1])),
      cell_by_cell_(streaming && !wide()),
      together_(wide() ? 2 : 1),
      winners_(search_registers()),
      gradients_(winners_ + together_),
      half_(window_bytes(plan, isa) / 2) {
  // Words are searched for longer than they are waited for.
  if (element_bytes(p_.in[0].dtype) == 4) fetch_by(Fetching::of_many_streams(next_rows_of(p_.in[0])));
  add_streams();
  entry_ = reinterpret_cast<void (*)(const PeriodCall*)>(
      reinterpret_cast<uintptr_t>(emit_all(problem, gradients_ + together_, [&](Body& front, Body& back) {
        emit_periods([&](const PeriodPart& columns) { emit_period(front, back, columns); });
      })));
}

void PeriodKernel::add_streams() {
  for (int64_t r = 0; r < p_.g.kernel[1]; ++r) add_stream(p_.in[0].x * p_.g.strides[2]);
  add_period_streams();
  for (int64_t b = 0; b < p_.reach(1); ++b) add_stream(2 * half_);
}

/// What goes past the caches is stored in whole cache lines: some vectors of a cell one after the other, or all of
/// them.
void PeriodKernel::emit_period(Body& front, Body& back, const PeriodPart& columns) {
  const bool window = rows_.window() && columns.window();
  const auto groups = [&](const auto& emit) {
    emit_channel_groups(*this, p_.g.channels, together_, lanes(), [&](int vectors, int last) {
      emit(Group{vectors, last, lanes()});
    });
  };
  const auto each_cell = [&](const auto& emit) {
    for (int64_t row = rows_.first_cell; row < rows_.end_cell; ++row)
      for (int64_t column = columns.first_cell; column < columns.end_cell; ++column) emit(row, column);
  };
  const auto cell = [&](const Group& group, int64_t row, int64_t column) {
    for (int v = 0; v < group.vectors; ++v) emit_cell(back, columns, group, row, column, v);
  };
  if (!cell_by_cell_) {
    groups([&](const Group& group) {
      if (window) emit_window(front, columns, group);
      each_cell([&](int64_t row, int64_t column) { cell(group, row, column); });
    });
    return;
  }
  if (window) groups([&](const Group& group) { emit_window(front, columns, group); });
  each_cell([&](int64_t row, int64_t column) { groups([&](const Group& group) { cell(group, row, column); }); });
}

void PeriodKernel::emit_window(Body& front, const PeriodPart& columns, const Group& group) {
  find_period_winners(columns, group);
  for (int v = 0; v < group.vectors; ++v) {
    load_period_gradient(front, vec(gradients_ + v), group, v);
    keep_window(v);
  }
}

/// Of the taps, the period's own cells are new: what lies as far behind them in memory as prefetching looks is asked
/// for.
void PeriodKernel::find_period_winners(const PeriodPart& columns, const Group& group) {
  const Taps taps{rows_.first_tap, rows_.end_tap, columns.first_tap, columns.end_tap};
  find_winners(winners_, group, taps, [&](int64_t row, int64_t tap) {
    mov(rdx, slot(static_cast<size_t>(row)));
    return cell_at(p_.in[0], tap * p_.g.dilations[2], 0);
  });
}

void PeriodKernel::keep_window(int vector) {
  if (!cell_by_cell_ && p_.reach(1) == 1 && p_.reach(2) == 1) return;
  const auto at = static_cast<int>(vector * vector_bytes());
  mov(rdx, slot(kept_stream(0)));
  vmovups(ptr[rdx + rcx * 4 + at], vec(winners_ + vector));
  vmovups(ptr[rdx + rcx * 4 + at + static_cast<int>(half_)], vec(gradients_ + vector));
}

void PeriodKernel::emit_cell(Body& back, const PeriodPart& columns, const Group& group, int64_t row, int64_t column,
                             int vector) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) { load_cell(dst, operand, group, row, column, vector); };
  hooks.skeleton = [&](Xmm dst) { add_windows(dst, columns, row, column, vector); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    const PoolOperand& o = p_.out[k];
    mov(rdx, slot(out_stream(row, k)));
    if (o.fold != Fold::none) return fold_to_slot(value, o.fold, cell_at(o, column, vector), group.count(vector));
    store(value, o.dtype, lane.flag, cell_at(o, column, vector), group.count(vector),
          streaming_ && group.count(vector) == lanes());
  };
  back.emit(hooks);
}

/// The gradients of the windows that the cell won: one row of windows after the other, in a row the last window first,
/// as wherever windows overlap, so that the layouts' results are the same bits.
void PeriodKernel::add_windows(const Xmm& sum, const PeriodPart& columns, int64_t row, int64_t column, int vector) {
  bool first = true;
  for (int64_t back_y = rows_.end_back; back_y-- > rows_.first_back;)
    for (int64_t back_x = columns.first_back; back_x < columns.end_back; ++back_x) {
      const int64_t y = p_.tap_of(1, row, back_y), x = p_.tap_of(2, column, back_x);
      if (y < 0 || x < 0) continue;
      const int64_t tap = y * p_.g.kernel[2] + x;
      if (!cell_by_cell_ && back_y == 0 && back_x == 0) {
        add_won(sum, first, vec(winners_ + vector), vec(gradients_ + vector), everywhere(tap));
      } else {
        const auto at = static_cast<int>(vector * vector_bytes() - back_x * 2 * half_);
        mov(rdx, slot(kept_stream(back_y)));
        vmovups(scratch(0), ptr[rdx + rcx * 4 + at]);
        add_won(sum, first, scratch(0), ptr[rdx + rcx * 4 + at + static_cast<int>(half_)], everywhere(tap));
      }
      first = false;
    }
  if (first) broadcast_bits(sum, 0);
}

}  // namespace partita::jit
