// SPDX-License-Identifier: Apache-2.0
// Code of rows of periods: rcx first channel of the group, r8 periods left, rax and rdx for a moment. Vectors: zeros,
// weights, a gradient, a value that is stored with the next one, the sums of each row of cells, then those of front and
// of back. Sums are made as by every kernel of averages, of the rows of a column first, so that all have the same bits;
// added to or multiplied into zeros, none of them is -0.
#include "kernels/jit/pool/backward/average_period_kernel.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "kernels/jit/pool/channel_groups.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Zmm;

constexpr int64_t kMostRows = 3, kMostCells = 16;  ///< of a period
constexpr int64_t kMostReach = 2;

}  // namespace

bool AveragePeriodKernel::fits(const PoolPlan& p) {
  const PoolGeometry& g = p.g;
  if (p.maximum || !p.channel_last || !has_periods(p)) return false;
  if (g.strides[1] < 2 || g.strides[2] < 2 || g.strides[1] > kMostRows || g.strides[1] * g.strides[2] > kMostCells)
    return false;
  if (p.reach(1) > kMostReach || p.reach(2) > kMostReach) return false;
  // Cells are reached by immediate numbers.
  const auto near = [&](const PoolOperand& o) {
    return std::abs(o.x) * (g.pads_begin[2] + g.strides[2]) < INT32_MAX / 2;
  };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near) && window_bytes(p) < INT32_MAX / kMostRows;
}

size_t AveragePeriodKernel::streams_of(const PoolPlan& p) { return period_streams(p) + 3; }

int64_t AveragePeriodKernel::window_bytes(const PoolPlan& p) {
  return rounded_up(p.g.channels, lanes_of(Isa::avx512)) * 4;
}

AveragePeriodKernel::AveragePeriodKernel(const PoolPlan& plan, const Problem& problem, const PeriodPart& rows,
                                         bool streaming)
    : PoolCode(Isa::avx512, plan), rows_(rows), streaming_(streaming), packs_(plan.has_one_narrow_result()) {
  // Loads alone keep too little under way.
  if (streaming_ && !reads_streams_alone()) fetch_by(Fetching::in_turns());
  add_streams();
  const int taken = kSums + static_cast<int>(p_.g.strides[1]) * kTogether;
  entry_ = reinterpret_cast<void (*)(const AveragePeriodCall*)>(reinterpret_cast<uintptr_t>(
      emit_all(problem, taken, [&](Body& front, Body& back) { emit_periods(front, back); })));
}

void AveragePeriodKernel::add_streams() {
  const int64_t step = p_.g.strides[2];
  for (int k : p_.front_in) add_stream(p_.in[static_cast<size_t>(k)].x);
  for (int64_t r = 0; r < p_.g.strides[1]; ++r)
    for (int k : p_.back_in) add_stream(p_.in[static_cast<size_t>(k)].x * step);
  for (int64_t r = 0; r < p_.g.strides[1]; ++r)
    for (const PoolOperand& o : p_.out) add_stream(o.x * step);
  add_stream(window_bytes(p_));
  add_stream(0);
  add_stream(sizeof(float));
}

/// Periods that are alike are a loop.
void AveragePeriodKernel::emit_periods(Body& front, Body& back) {
  broadcast_bits(vec(kZero), 0);
  if (!p_.same_along_rows) vbroadcastss(vec(kRowWeight), dword[rdi + offsetof(AveragePeriodCall, row_weight)]);
  if (p_.same_along_x) broadcast_bits(vec(kWeight), std::bit_cast<int32_t>(p_.weight));
  const int64_t periods = periods_of(p_, 2);
  for (int64_t period = 0, end = 0; period < periods; period = end) {
    const PeriodPart columns = period_part(p_, 2, period);
    for (end = period + 1; end < periods && period_part(p_, 2, end) == columns;) ++end;
    Xbyak::Label next;
    mov(r8, end - period);
    align(16);
    L(next);
    emit_period(front, back, columns);
    advance_streams();
    dec(r8);
    jnz(next, T_NEAR);
  }
}

void AveragePeriodKernel::emit_period(Body& front, Body& back, const PeriodPart& columns) {
  emit_channel_groups(*this, p_.g.channels, kTogether, lanes(), [&](int vectors, int last) {
    const Group group{vectors, last, lanes()};
    if (columns.window()) emit_column(front, group);
    for (int64_t row = rows_.first_cell; row < rows_.end_cell; ++row)
      for (int64_t column = columns.first_cell; column < columns.end_cell; ++column)
        emit_cell(back, columns, group, row, column);
    if (columns.window()) keep_sums(group);
  });
}

/// The sums of the column of windows that the period starts with.
void AveragePeriodKernel::emit_column(Body& front, const Group& group) {
  for (int v = 0; v < group.vectors; ++v) {
    if (rows_.window()) load_gradient(front, group, v);
    for (int64_t row = rows_.first_cell; row < rows_.end_cell; ++row)
      if (covered(row)) sum_rows(row, v);
    if (!rows_.window() || p_.reach(1) == 1) continue;
    mov(rdx, slot(above_stream()));
    vmovups(ptr[rdx + rcx * 4 + v * static_cast<int>(vector_bytes())], vec(kGradient));
  }
}

void AveragePeriodKernel::load_gradient(Body& front, const Group& group, int vector) {
  const Xmm gradient = vec(kGradient);
  emit_gradient(front, gradient, [&](Xmm dst, const PoolOperand& o, size_t k) {
    const int each = element_bytes(o.dtype), behind = vector * lanes() * each;
    mov(rdx, slot(k));
    load_elements(dst, o, o.c == 0, o.c == 0 ? RegExp(rdx) : rdx + rcx * each + behind, group.count(vector),
                  o.begins_line(behind, lanes()));
  });
  if (!p_.same_along_rows)
    vfmadd213ps(gradient, vec(kRowWeight), vec(kZero));
  else if (p_.same_along_x && p_.weight == 1)
    vaddps(gradient, gradient, vec(kZero));
}

/// Of the window and of the one above it, those that lie over the row of cells.
void AveragePeriodKernel::sum_rows(int64_t row, int vector) {
  const Xmm sum = sums(row, vector), gradient = vec(kGradient);
  if (covers(row, 1)) {
    mov(rdx, slot(above_stream()));
    const auto above = ptr[rdx + rcx * 4 + vector * static_cast<int>(vector_bytes())];
    covers(row, 0) ? vaddps(sum, gradient, above) : vmovups(sum, above);
  } else {
    vmovaps(sum, gradient);
  }
  if (!p_.same_along_x) {
    mov(rdx, slot(weight_stream()));
    vfmadd132ps(sum, vec(kZero), ptr_b[rdx]);
  } else if (p_.weight != 1) {
    vfmadd132ps(sum, vec(kZero), vec(kWeight));
  }
}

/// For the next period; behind the cells, which read those that were kept before.
void AveragePeriodKernel::keep_sums(const Group& group) {
  if (p_.reach(2) == 1) return;
  for (int64_t row = rows_.first_cell; row < rows_.end_cell; ++row)
    for (int v = 0; covered(row) && v < group.vectors; ++v) vmovups(ptr[sums_before(row, v)], sums(row, v));
}

RegExp AveragePeriodKernel::sums_before(int64_t row, int vector) {
  mov(rdx, slot(before_stream()));
  return rdx + rcx * 4 + static_cast<int>(row * window_bytes(p_) + vector * vector_bytes());
}

void AveragePeriodKernel::emit_cell(Body& back, const PeriodPart& columns, const Group& group, int64_t row,
                                    int64_t column) {
  for (int v = 0; v < group.vectors; ++v) {
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int operand) {
      const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
      const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
      mov(rdx, slot(back_stream(row, k)));
      load_elements(dst, o, o.c == 0, cell_at(o, column, v), group.count(v),
                    o.begins_line(v * lanes() * element_bytes(o.dtype), lanes()));
    };
    hooks.skeleton = [&](Xmm dst) { add_columns(dst, columns, row, column, v); };
    hooks.store = [&](Xmm value, const Lane& lane) { store_cell(value, lane, group, row, column, v); };
    back.emit(hooks);
  }
}

void AveragePeriodKernel::add_columns(const Xmm& sum, const PeriodPart& columns, int64_t row, int64_t column,
                                      int vector) {
  const bool now = columns.window() && p_.tap_of(2, column, 0) >= 0;
  const bool before = columns.window(1) && p_.tap_of(2, column, 1) >= 0;
  if (!covered(row) || (!now && !before)) return broadcast_bits(sum, 0);
  if (!before) return vmovaps(sum, sums(row, vector));
  const auto at = ptr[sums_before(row, vector)];
  now ? vaddps(sum, sums(row, vector), at) : vmovups(sum, at);
}

void AveragePeriodKernel::store_cell(const Xmm& value, const Lane& lane, const Group& group, int64_t row,
                                     int64_t column, int vector) {
  const auto k = static_cast<size_t>(lane.imm);
  const PoolOperand& o = p_.out[k];
  const int count = group.count(vector);
  const bool pair = packs_ && !lane.flag && (vector % 2 == 1 || vector + 1 < group.vectors);
  const Xmm first = vec(kFirst);
  if (pair && vector % 2 == 0) return vmovaps(first, value);
  mov(rdx, slot(out_stream(row, k)));
  if (pair) {
    compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(o.dtype)}, first, first, value, first);
    return store_words(first, cell_at(o, column, vector - 1), lanes() + count, streaming_ && count == lanes());
  }
  if (o.fold != Fold::none) return fold_to_slot(value, o.fold, cell_at(o, column, vector), count);
  store(value, o.dtype, lane.flag, cell_at(o, column, vector), count, streaming_ && count == lanes());
}

/// Of a cell of the period, from rdx on, which holds the place of column 0 as many periods further.
RegExp AveragePeriodKernel::cell_at(const PoolOperand& o, int64_t column, int vector) const {
  const RegExp at = rdx + static_cast<int>((column - p_.g.pads_begin[2]) * o.x);
  const int each = element_bytes(o.dtype);
  return o.c == 0 ? at : at + rcx * each + vector * lanes() * each;
}

}  // namespace partita::jit
