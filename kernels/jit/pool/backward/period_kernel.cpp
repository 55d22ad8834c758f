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

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

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
  if (keeps_words(problem)) choices_ = choices_of(p_, problem);
  // Words are searched for longer than they are waited for.
  if (element_bytes(p_.in[0].dtype) == 4) fetch_by(Fetching::of_many_streams(next_rows_of(p_.in[0])));
  add_streams();
  hold_streams(kept_stream(p_.reach(1)));
  entry_ = reinterpret_cast<void (*)(const PeriodCall*)>(
      reinterpret_cast<uintptr_t>(emit_all(problem, gradients_ + together_, [&](Body& front, Body& back) {
        emit_periods([&](const PeriodPart& columns) { emit_period(front, back, columns); });
      })));
}

/// Whether gradients are added up from elements of 16 bits as they lie in memory.
bool PeriodKernel::keeps_words(const Problem& problem) const {
  constexpr int kGradientPort = 1;
  const auto is_like = [&](const PoolOperand& o) { return o.dtype == Dtype::bf16 && o.c == 2; };
  return wide() && problem.front.empty() && !p_.has_folds() && is_like(p_.in[0]) && is_like(p_.in[kGradientPort]) &&
         std::ranges::all_of(p_.out, is_like) &&
         std::ranges::all_of(p_.back_in, [&](int k) { return is_like(p_.in[static_cast<size_t>(k)]); });
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
      if (in_words(group)) {
        if (window) emit_words(columns, group);
        return each_cell([&](int64_t row, int64_t column) { emit_cell_of_words(columns, row, column); });
      }
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
  find_winners(winners_, group, taps_of(columns), [&](int64_t row, int64_t tap) { return place_of(row, tap); });
}

PeriodKernel::Taps PeriodKernel::taps_of(const PeriodPart& columns) const {
  return {rows_.first_tap, rows_.end_tap, columns.first_tap, columns.end_tap};
}

RegExp PeriodKernel::place_of(int64_t row, int64_t tap) {
  return cell_at(p_.in[0], at(static_cast<size_t>(row)), tap * p_.g.dilations[2], 0);
}

/// What is found in the group's window, both vectors as one of words.
void PeriodKernel::emit_words(const PeriodPart& columns, const Group& group) {
  const Zmm winner(winners_), other(winners_ + 1), gradient(gradients_);
  const auto place = [&](int64_t row, int64_t tap) { return place_of(row, tap); };
  Xbyak::Label numbers;
  find_winner_words(winner, other, taps_of(columns), place);
  jz(numbers, T_NEAR);
  emit_seldom([&] {
    for (int v = 0; v < group.vectors; ++v) {
      find_channel_winner(vec(winners_ + v), group, v, taps_of(columns), place);
      vpmovdw(Ymm(winners_ + v), Zmm(winners_ + v));
    }
    vinserti64x4(winner, winner, Ymm(other.getIdx()), 1);
  });
  L(numbers);
  const PoolOperand& o = p_.in[static_cast<size_t>(p_.front_in[0])];
  const RegExp windows = at(front_stream(0)) + rcx * 2;
  if (o.begins_line(0, kWords)) fetch(windows);
  vmovdqu16(gradient, ptr[windows]);
  if (p_.reach(1) == 1 && p_.reach(2) == 1) return;
  const RegExp kept = at(kept_stream(0)) + rcx * 4;
  vmovups(ptr[kept], winner);
  vmovups(ptr[kept + kWordsBytes], gradient);
}

void PeriodKernel::emit_cell_of_words(const PeriodPart& columns, int64_t row, int64_t column) {
  const Zmm sum(winners_ + 1), upper(gradients_ + 1);
  std::vector<WordTerm> terms;
  each_window(columns, row, column, [&](int64_t back_y, int64_t back_x, int64_t tap) {
    const bool is_new = back_y == 0 && back_x == 0;
    terms.push_back({tap, [=, this](int part) {
                       if (is_new) return Held(Zmm(part == 0 ? winners_ : gradients_));
                       const auto behind = static_cast<int>(part * kWordsBytes - back_x * 2 * half_);
                       return Held(ptr[at(kept_stream(back_y)) + rcx * 4 + behind]);
                     }});
  });
  sum_words(sum, upper, terms);
  for (size_t k = 0; k < p_.out.size(); ++k) {
    const Zmm chosen = chosen_words(sum, (*choices_)[k], kWords, [&](const PoolOperand& o, size_t number) {
      const RegExp from = cell_at(o, at(back_stream(row, number)), column, 0);
      if (p_.back_in[number] != 0) fetch(from, next_rows_of(o));  // the source has been read already
      return from;
    });
    store_words(chosen, cell_at(p_.out[k], at(out_stream(row, k)), column, 0), kWords, streaming_);
  }
}

void PeriodKernel::keep_window(int vector) {
  if (!cell_by_cell_ && p_.reach(1) == 1 && p_.reach(2) == 1) return;
  const RegExp kept = at(kept_stream(0)) + rcx * 4 + static_cast<int>(vector * vector_bytes());
  vmovups(ptr[kept], vec(winners_ + vector));
  vmovups(ptr[kept + static_cast<int>(half_)], vec(gradients_ + vector));
}

void PeriodKernel::emit_cell(Body& back, const PeriodPart& columns, const Group& group, int64_t row, int64_t column,
                             int vector) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) { load_cell(dst, operand, group, row, column, vector); };
  hooks.skeleton = [&](Xmm dst) { add_windows(dst, columns, row, column, vector); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    const PoolOperand& o = p_.out[k];
    const RegExp to = cell_at(o, at(out_stream(row, k)), column, vector);
    if (o.fold != Fold::none) return fold_to_slot(value, o.fold, to, group.count(vector));
    store(value, o.dtype, lane.flag, to, group.count(vector), streaming_ && group.count(vector) == lanes());
  };
  back.emit(hooks);
}

/// The windows over a cell: one row of windows after the other, in a row the last window first, as wherever windows
/// overlap, so that the layouts' results are the same bits.
void PeriodKernel::each_window(const PeriodPart& columns, int64_t row, int64_t column, const EachWindow& each) const {
  for (int64_t back_y = rows_.end_back; back_y-- > rows_.first_back;)
    for (int64_t back_x = columns.first_back; back_x < columns.end_back; ++back_x) {
      const int64_t y = p_.tap_of(1, row, back_y), x = p_.tap_of(2, column, back_x);
      if (y >= 0 && x >= 0) each(back_y, back_x, y * p_.g.kernel[2] + x);
    }
}

/// The gradients of the windows that the cell won.
void PeriodKernel::add_windows(const Xmm& sum, const PeriodPart& columns, int64_t row, int64_t column, int vector) {
  bool first = true;
  each_window(columns, row, column, [&](int64_t back_y, int64_t back_x, int64_t tap) {
    if (!cell_by_cell_ && back_y == 0 && back_x == 0) {
      add_won(sum, first, vec(winners_ + vector), vec(gradients_ + vector), everywhere(tap));
    } else {
      const RegExp kept =
          at(kept_stream(back_y)) + rcx * 4 + static_cast<int>(vector * vector_bytes() - back_x * 2 * half_);
      vmovups(scratch(0), ptr[kept]);
      add_won(sum, first, scratch(0), ptr[kept + static_cast<int>(half_)], everywhere(tap));
    }
    first = false;
  });
  if (first) broadcast_bits(sum, 0);
}

}  // namespace partita::jit
