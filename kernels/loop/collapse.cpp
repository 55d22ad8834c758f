// SPDX-License-Identifier: Apache-2.0
// Joining of axes; entry: collapsed().
#include "kernels/loop/collapse.hpp"

namespace partita {
namespace {

bool reads_coordinate(const Expr& expr, int axis) {
  for (const Instr& in : expr.code)
    if (in.op == ExprOp::index_s32 && in.imm == axis) return true;
  return false;
}

/// Axes behind axis `d` are one place nearer.
void axis_removed(Expr& expr, int d) {
  for (Instr& in : expr.code)
    if (in.op == ExprOp::index_s32 && in.imm > d) --in.imm;
}

/// Axis `d` and the next one are one run for this operand.
bool joins(const TensorDesc& desc, int d) { return desc.strides[d] == desc.strides[d + 1] * desc.dims[d + 1]; }

void join(TensorDesc& desc, int d) {
  desc.dims[d] *= desc.dims[d + 1];
  desc.strides[d] = desc.strides[d + 1];
  desc.dims.erase(d + 1);
  desc.strides.erase(d + 1);
}

/// An axis of extent 1 moves no operand, whatever stride it has.
void drop_unit_axes(Problem& p) {
  for (int d = p.out[0].dims.size() - 1; d >= 0 && p.out[0].dims.size() > 1; --d) {
    if (p.out[0].dims[d] != 1 || reads_coordinate(p.back, d)) continue;
    for (auto* side : {&p.in, &p.out})
      for (TensorDesc& desc : *side) {
        desc.dims.erase(d);
        desc.strides.erase(d);
      }
    axis_removed(p.back, d);
  }
}

}  // namespace

Problem collapsed(const Problem& loop) {
  Problem p = loop;
  if (p.out.empty()) return p;
  drop_unit_axes(p);
  for (int d = p.out[0].dims.size() - 2; d >= 0; --d) {
    bool all = !reads_coordinate(p.back, d) && !reads_coordinate(p.back, d + 1);
    for (auto* side : {&p.in, &p.out})
      for (const TensorDesc& desc : *side) all = all && joins(desc, d);
    if (!all) continue;
    for (auto* side : {&p.in, &p.out})
      for (TensorDesc& desc : *side) join(desc, d);
    axis_removed(p.back, d);
  }
  return p;
}

}  // namespace partita
