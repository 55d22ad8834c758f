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

constexpr int64_t kMostRows = 3;  ///< of a period's cells
constexpr int64_t kMostReach = 2;

}  // namespace

bool AveragePeriodKernel::fits(const PoolPlan& p) {
  const PoolGeometry& g = p.g;
  if (p.maximum || !has_channel_last_periods(p)) return false;
  if (g.strides[1] < 2 || g.strides[2] < 2 || g.strides[1] > kMostRows) return false;
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
    : PeriodCode(Isa::avx512, plan, rows, streaming, 0), packs_(plan.has_one_narrow_result()) {
  // Loads alone keep too little under way.
  if (streaming_ && !reads_streams_alone()) fetch_by(Fetching::in_turns());
  add_period_streams();
  add_stream(window_bytes(p_));
  add_stream(0);
  add_stream(sizeof(float));
  hold_streams(streams_of(p_));
  const int taken = kSums + static_cast<int>(p_.g.strides[1]) * kTogether;
  entry_ = reinterpret_cast<void (*)(const AveragePeriodCall*)>(
      reinterpret_cast<uintptr_t>(emit_all(problem, taken, [&](Body& front, Body& back) { emit_row(front, back); })));
}

void AveragePeriodKernel::emit_row(Body& front, Body& back) {
  broadcast_bits(vec(kZero), 0);
  if (!p_.same_along_rows) vbroadcastss(vec(kRowWeight), dword[rdi + offsetof(AveragePeriodCall, row_weight)]);
  if (p_.same_along_x) broadcast_bits(vec(kWeight), std::bit_cast<int32_t>(p_.weight));
  emit_periods([&](const PeriodPart& columns) { emit_period(front, back, columns); });
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
    vmovups(ptr[at(above_stream()) + rcx * 4 + v * static_cast<int>(vector_bytes())], vec(kGradient));
  }
}

void AveragePeriodKernel::load_gradient(Body& front, const Group& group, int vector) {
  const Xmm gradient = vec(kGradient);
  load_period_gradient(front, gradient, group, vector);
  if (!p_.same_along_rows)
    vfmadd213ps(gradient, vec(kRowWeight), vec(kZero));
  else if (p_.same_along_x && p_.weight == 1)
    vaddps(gradient, gradient, vec(kZero));
}

/// Of the window and of the one above it, those that lie over the row of cells.
void AveragePeriodKernel::sum_rows(int64_t row, int vector) {
  const Xmm sum = sums(row, vector), gradient = vec(kGradient);
  if (covers(row, 1)) {
    const auto above = ptr[at(above_stream()) + rcx * 4 + vector * static_cast<int>(vector_bytes())];
    covers(row, 0) ? vaddps(sum, gradient, above) : vmovups(sum, above);
  } else {
    vmovaps(sum, gradient);
  }
  if (!p_.same_along_x)
    vfmadd132ps(sum, vec(kZero), ptr_b[at(weight_stream())]);
  else if (p_.weight != 1)
    vfmadd132ps(sum, vec(kZero), vec(kWeight));
}

/// For the next period; behind the cells, which read those that were kept before.
void AveragePeriodKernel::keep_sums(const Group& group) {
  if (p_.reach(2) == 1) return;
  for (int64_t row = rows_.first_cell; row < rows_.end_cell; ++row)
    for (int v = 0; covered(row) && v < group.vectors; ++v) vmovups(ptr[sums_before(row, v)], sums(row, v));
}

RegExp AveragePeriodKernel::sums_before(int64_t row, int vector) {
  return at(before_stream()) + rcx * 4 + static_cast<int>(row * window_bytes(p_) + vector * vector_bytes());
}

void AveragePeriodKernel::emit_cell(Body& back, const PeriodPart& columns, const Group& group, int64_t row,
                                    int64_t column) {
  for (int v = 0; v < group.vectors; ++v) {
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int operand) { load_cell(dst, operand, group, row, column, v); };
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
  const Xbyak::RegExp to = cell_at(o, at(out_stream(row, k)), column, pair ? vector - 1 : vector);
  if (pair) {
    compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(o.dtype)}, first, first, value, first);
    return store_words(first, to, lanes() + count, streaming_ && count == lanes());
  }
  if (o.fold != Fold::none) return fold_to_slot(value, o.fold, to, count);
  store(value, o.dtype, lane.flag, to, count, streaming_ && count == lanes());
}

}  // namespace partita::jit
