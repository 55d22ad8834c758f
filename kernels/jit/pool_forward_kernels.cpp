// SPDX-License-Identifier: Apache-2.0
// Making of a forward pooling's code: folds of source rows, their taking apart, combinations along a row.
#include "kernels/jit/pool_forward_kernels.hpp"

#include <algorithm>

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
    const int64_t lanes = isa == Isa::avx512 ? 16 : 8;
    apart_length = lanes * g.strides[2];
    take_apart =
        std::make_unique<const Deinterleave>(isa, InterleavedRows{Dtype::f32, apart_length, g.strides[2], plan.phases,
                                                                  apart_length * 4, lanes * 4, plan.phase_floats * 4});
  }
  const auto taps = static_cast<int64_t>(plan.taps.size());
  for (int64_t t = 0; t < taps; t += plan.call_taps) {
    combine.push_back({t, std::min(plan.call_taps, taps - t), nullptr, nullptr});
    combine.back().plain = combination(combine.back(), false);
    if (plan.may_stream && t + plan.call_taps >= taps) combine.back().streaming = combination(combine.back(), true);
  }
}

Value ForwardKernels::joined(RowKernelWriter& w, Value a, Value b) const {
  return plan_.p.g.maximum ? w.builder().max(a, b) : w.builder().add(a, b);
}

ForwardKernels::Kernel ForwardKernels::fold(int64_t source_rows, bool first) const {
  const ForwardPool& p = plan_.p;
  const PoolGeometry& g = p.g;
  std::vector<RowOperand> operands;
  for (int k : p.front_in) {
    const PoolView& view = p.in[static_cast<size_t>(k)];
    const auto walk = !g.channel_last                      ? row_walk(view, g.src[2], view.x)
                      : plan_.fold_walk == FoldWalk::cells ? row_walk(view, g.channels, view.c)
                                                           : joined_walk(view, g.src[2], g.channels);
    const int64_t step = plan_.fold_walk == FoldWalk::cells     ? view.x
                         : plan_.fold_walk == FoldWalk::planes  ? view.c
                         : plan_.fold_walk == FoldWalk::sources ? view.y * plan_.fold_rows
                                                                : view.y * g.strides[1];
    operands.push_back({view.dtype, walk == RowWalk::next, step});
  }
  RowKernelWriter w;
  Value value = 0;
  for (int64_t row = 0; row < source_rows; ++row) {
    const Value next = w.splice(p.front, p.front_in, operands);
    value = row == 0 ? next : joined(w, value, next);
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

ForwardKernels::Kernel ForwardKernels::combination(const Combine& block, bool streaming) const {
  const ForwardPool& p = plan_.p;
  const bool channel_last = p.g.channel_last;
  const int64_t length = channel_last ? plan_.cell : p.g.dst[2];
  const int64_t places = plan_.apart ? plan_.places / p.g.strides[2] : plan_.places;
  const RowOperand tap{Dtype::f32, true, 4 * (channel_last ? p.g.strides[2] * plan_.cell : places)};
  const RowOperand pooled{Dtype::f32, true, 4 * length};
  RowKernelWriter w;
  Value value = 0;
  for (int64_t t = 0; t < block.count; ++t) {
    const Value next = w.load(tap);
    value = t == 0 ? next : joined(w, value, next);
  }
  if (block.first > 0) value = joined(w, w.load(pooled), value);
  if (block.first + block.count < static_cast<int64_t>(plan_.taps.size())) {
    w.store(pooled, value);
    return w.make(isa_, length, false);
  }
  value = finished(w, value);
  const auto operand = [&](const PoolView& view) {
    const auto walk = channel_last ? row_walk(view, p.g.channels, view.c) : row_walk(view, p.g.dst[2], view.x);
    return RowOperand{view.dtype, walk == RowWalk::next, channel_last ? view.x : view.y};
  };
  std::vector<RowOperand> operands, outputs;
  for (int k : p.back_in) operands.push_back(operand(p.in[static_cast<size_t>(k)]));
  for (const PoolView& view : p.out) outputs.push_back(operand(view));
  w.splice(p.back, p.back_in, operands, outputs, value);
  return w.make(isa_, length, streaming);
}

/// The window's maximum or average of a folded value.
Value ForwardKernels::finished(RowKernelWriter& w, Value value) const {
  const bool channel_last = plan_.p.g.channel_last;
  ExprBuilder b = w.builder();
  if (plan_.numbers == ForwardPlan::Numbers::none) return value;
  if (plan_.numbers == ForwardPlan::Numbers::constant)
    return plan_.p.divides ? b.div(value, b.constant(plan_.constant)) : b.mul(value, b.constant(plan_.constant));
  const Value of_x = w.load(channel_last ? RowOperand{Dtype::f32, false, 4} : RowOperand{Dtype::f32, true, 0});
  const Value of_row = w.load({Dtype::f32, false, channel_last ? 0 : 4});
  if (plan_.p.g.maximum) return b.max(value, b.max(of_x, of_row));
  const Value number = b.mul(of_x, of_row);
  return plan_.p.divides ? b.div(value, number) : b.mul(value, number);
}

}  // namespace partita::jit
