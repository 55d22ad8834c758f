// SPDX-License-Identifier: Apache-2.0
// Choice of the axes of tiles.
#include "kernels/jit/flat/strided_space.hpp"

#include <algorithm>
#include <vector>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/transpose.hpp"
#include "kernels/loop/collapse.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

/// Rows shorter than this are not worth being walked along.
constexpr int64_t kShortRow = 16;

/// Moves axis `axis` to place `place` from the end; the others keep their order.
Problem with_axis_at(const Problem& p, int axis, int place) {
  Dims order;
  const int rank = p.out[0].dims.size();
  for (int d = 0; d < rank; ++d)
    if (d != axis) order.push_back(d);
  Dims whole;
  for (int d = 0; d < rank - 1 - place; ++d) whole.push_back(order[d]);
  whole.push_back(axis);
  for (int d = rank - 1 - place; d < rank - 1; ++d) whole.push_back(order[d]);
  return with_axes(p, whole);
}

void add_unit_axis(Problem& p) {
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side) {
      Dims dims{1}, strides{0};
      for (int64_t extent : desc.dims) dims.push_back(extent);
      for (int64_t stride : desc.strides) strides.push_back(stride);
      desc.dims = dims;
      desc.strides = strides;
    }
  for (Instr& in : p.back.code)
    if (in.op == ExprOp::index_s32) ++in.imm;
}

int64_t step_along(const TensorDesc& desc, int axis) { return desc.dims[axis] == 1 ? 0 : desc.strides[axis]; }

/// An input's elements may lie so far apart along the rows of a tile.
constexpr int64_t kFarthestStep = 4;

bool is_transposed_step(const TensorDesc& desc, int64_t step, bool output) {
  return step == 1 || (!output && step > 1 && step <= kFarthestStep && bits_of(desc.dtype) == 32);
}

/// The axis, other than the last, along which the operand is best read: that of its neighbours, or a longer one of
/// small steps, for tiles of few rows would be many.
int axis_of_rows(const TensorDesc& desc, bool output) {
  int best = -1;
  for (int d = desc.dims.size() - 2; d >= 0; --d) {
    const int64_t step = step_along(desc, d);
    if (!is_transposed_step(desc, step, output)) continue;
    if (best < 0 || (desc.dims[best] <= kFarthestStep && desc.dims[d] > desc.dims[best])) best = d;
    if (step == 1 && desc.dims[d] > kFarthestStep) return d;
  }
  return best;
}

/// The axis, other than the last, along which most operands lie that do not lie along the last.
int other_axis(const Problem& p) {
  const int rank = p.out[0].dims.size();
  std::vector<int> votes(static_cast<size_t>(rank), 0);
  for (const auto* side : {&p.in, &p.out})
    for (size_t k = 0; k < side->size(); ++k) {
      const TensorDesc& desc = (*side)[k];
      const int64_t inner = step_along(desc, rank - 1);
      if (inner == 0 || inner == 1 || (side == &p.in && counts(p.back, static_cast<int>(k)))) continue;
      const int axis = axis_of_rows(desc, side == &p.out);
      if (axis >= 0) ++votes[static_cast<size_t>(axis)];
    }
  const auto best = std::max_element(votes.rbegin() + 1, votes.rend());
  return static_cast<int>(votes.rend() - best) - 1;
}

}  // namespace

Problem tiled_space(const Problem& loop) {
  Problem p = collapsed(with_axes(loop, axes_in_memory_order(loop.out[0].strides)));
  while (p.out[0].dims.size() < 2) add_unit_axis(p);
  p = with_axis_at(p, other_axis(p), 1);
  const Dims& dims = p.out[0].dims;
  const int rank = dims.size();
  // What lies apart along the rows of a tile would be read one by one across them.
  const bool apart = std::ranges::any_of(p.in, [&](const TensorDesc& desc) {
    return access_of(desc, false) == Access::transposed && desc.strides[rank - 2] != 1;
  });
  if (dims[rank - 1] < kShortRow && dims[rank - 2] > dims[rank - 1] && !apart) p = with_axis_at(p, rank - 2, 0);
  return p;
}

SharedLines put_lines_together(Problem& tiled) {
  const int rank = tiled.out[0].dims.size(), last = rank - 3;
  if (last < 0) return SharedLines::none;
  const TensorDesc& out = tiled.out[0];
  if (shares_lines(out, last)) {
    const int along = step_along(out, rank - 1) == 1 ? rank - 1 : rank - 2;
    return out.dims[along] * bits_of(out.dtype) / 8 < kCacheLine ? SharedLines::result : SharedLines::none;
  }
  for (int axis = last; axis >= 0; --axis) {
    if (!shares_lines(tiled.in[0], axis)) continue;
    tiled = with_axis_at(tiled, axis, 2);
    return SharedLines::source;
  }
  return SharedLines::none;
}

Access access_of(const TensorDesc& desc, bool output) {
  const int rank = desc.dims.size();
  const int64_t inner = step_along(desc, rank - 1), other = step_along(desc, rank - 2);
  const int bytes = element_bytes(desc.dtype);
  if (!Emitter::loads(desc.dtype)) return Access::scattered;
  if (inner == 1 || (inner == 0 && (!output || desc.dims.back() == 1))) return Access::direct;
  if (is_transposed_step(desc, other, output) && inner * bytes <= TransposeKernel::kMaxRow) return Access::transposed;
  return Access::scattered;
}

}  // namespace partita::jit
