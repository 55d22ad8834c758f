// SPDX-License-Identifier: Apache-2.0
// Making of a forward pooling's code: folds of source rows, their taking apart, combinations along a row.
#include "kernels/jit/pool/forward/kernels.hpp"

#include <algorithm>
#include <utility>

namespace partita::jit {

using Value = ExprBuilder::Value;
using FoldWalk = ForwardPlan::FoldWalk;

ForwardKernels::ForwardKernels(const ForwardPlan& plan, Isa isa) : plan_(plan), isa_(isa) {
  const PoolGeometry& g = plan.p.g;
  fold_first.resize(static_cast<size_t>(plan.fold_rows) + 1);
  fold_further = fold_first;
  for (int64_t z = 0; z < g.dst[0]; ++z)
    for (int64_t y = 0; y < g.dst[1]; y = plan.alike_until[static_cast<size_t>(y)]) {
      if (plan.fold_walk == FoldWalk::sources) break;
      int64_t left = plan.source_rows(z, y);
      for (bool first = true; left > 0; first = false) {
        const int64_t now = std::min(left, plan.fold_rows);
        Kernel& kernel = (first ? fold_first : fold_further)[static_cast<size_t>(now)];
        if (!kernel) kernel = fold(now, first);
        left -= now;
      }
    }
  if (plan.fold_walk == FoldWalk::sources) {
    fold_further.back() = fold(plan.fold_rows, false);
    const int64_t rest = g.src[1] % plan.fold_rows;
    if (rest > 0) fold_further[static_cast<size_t>(rest)] = fold(rest, false);
  }
  if (plan.apart) {
    const int64_t lanes = lanes_of(isa);
    apart_length = lanes * g.strides[2];
    take_apart =
        std::make_unique<const Deinterleave>(isa, InterleavedRows{Dtype::f32, apart_length, g.strides[2], plan.phases,
                                                                  apart_length * 4, lanes * 4, plan.phase_floats * 4});
  }
  combine = combination(false);
  if (plan.may_stream) combine_streaming = combination(true);
}

ForwardKernels::Kernel ForwardKernels::fold(int64_t source_rows, bool first) const {
  const ForwardPool& p = plan_.p;
  const PoolGeometry& g = p.g;
  std::vector<RowOperand> operands;
  const bool in_turns = !g.channel_last && plan_.fold_walk == FoldWalk::rows;  // line after line, few rows at once
  for (int k : p.front_in) {
    const PoolView& view = p.in[static_cast<size_t>(k)];
    const auto walk = !g.channel_last                      ? row_walk(view, g.src[2], view.x)
                      : plan_.fold_walk == FoldWalk::cells ? row_walk(view, g.channels, view.c)
                                                           : joined_walk(view, g.src[2], g.channels);
    const int64_t step = plan_.fold_walk == FoldWalk::cells     ? view.x
                         : plan_.fold_walk == FoldWalk::planes  ? view.c
                         : plan_.fold_walk == FoldWalk::sources ? view.y * plan_.fold_rows
                                                                : view.y * g.strides[1];
    const bool moves = walk == RowWalk::next;
    const bool in_rows = g.channel_last && source_rows > 1;  // whose ends lie at the next ones' beginnings
    const Fetching fetching = in_turns  ? Fetching::in_turns()
                              : in_rows ? Fetching::of_many_streams(ahead_in_rows(step))
                                        : Fetching::near();
    operands.push_back(
        {.dtype = view.dtype, .steps = moves, .row_bytes = step, .fetching = moves ? fetching : Fetching{}});
  }
  RowKernelWriter w;
  Value value = 0;
  for (int64_t row = 0; row < source_rows; ++row) {
    const Value next = w.splice(p.front, p.front_in, operands);
    value = row == 0 ? next : g.maximum ? w.builder().max(value, next) : w.builder().add(value, next);
  }
  const int64_t step = plan_.fold_walk == FoldWalk::cells     ? plan_.cell
                       : plan_.fold_walk == FoldWalk::planes  ? plan_.tile_rows * plan_.row_floats
                       : plan_.fold_walk == FoldWalk::sources ? 0
                                                              : plan_.row_floats;
  RowOperand to{Dtype::f32, true, step * 4};
  if (!first) to.fold = g.maximum ? Fold::max : Fold::sum;
  first ? w.store(to, value) : w.fold(to, value);
  return w.make(isa_, plan_.fold_length, false);
}

/// Operands: those that `back` loads, then the two numbers.
std::unique_ptr<const Stencil> ForwardKernels::combination(bool streaming) const {
  const ForwardPool& p = plan_.p;
  const bool channel_last = p.g.channel_last;
  StencilShape shape;
  shape.fold = p.g.maximum ? Fold::max : Fold::sum;
  shape.every_second = plan_.every_second;
  shape.reads_beyond = true;
  shape.row_bytes = 4 * plan_.combined_row_floats;
  shape.taps = plan_.taps;
  shape.rows.length = channel_last ? plan_.cell : p.g.dst[2];
  shape.rows.streaming = streaming;
  const auto operand = [&](const PoolView& view) {
    const auto walk = channel_last ? row_walk(view, p.g.channels, view.c) : row_walk(view, p.g.dst[2], view.x);
    return RowOperand{view.dtype, walk == RowWalk::next, channel_last ? view.x : view.y};
  };
  for (int k : p.back_in) shape.rows.in.push_back(operand(p.in[static_cast<size_t>(k)]));
  for (const PoolView& view : p.out) shape.rows.out.push_back(operand(view));
  const auto numbers = static_cast<int>(shape.rows.in.size());
  if (plan_.numbers == ForwardPlan::Numbers::each) {
    shape.rows.in.push_back(channel_last ? RowOperand{Dtype::f32, false, 4} : RowOperand{Dtype::f32, true, 0});
    shape.rows.in.push_back({Dtype::f32, false, channel_last ? 0 : 4});
  }

  Expr expr;
  const Value value = finished(expr, numbers);
  return make_stencil(isa_, shape, std::move(expr), value, p.back, p.back_in);
}

/// The window's maximum or average, of the combination of its taps; its numbers are operands `numbers` and the next.
Value ForwardKernels::finished(Expr& expr, int numbers) const {
  ExprBuilder b(expr);
  const Value value = b.skeleton();
  if (plan_.numbers == ForwardPlan::Numbers::none) return value;
  if (plan_.numbers == ForwardPlan::Numbers::constant)
    return plan_.p.divides ? b.div(value, b.constant(plan_.constant)) : b.mul(value, b.constant(plan_.constant));
  const Value of_x = b.load(numbers), of_row = b.load(numbers + 1);
  if (plan_.p.g.maximum) return b.max(value, b.max(of_x, of_row));
  const Value number = b.mul(of_x, of_row);
  return plan_.p.divides ? b.div(value, number) : b.mul(value, number);
}

}  // namespace partita::jit
