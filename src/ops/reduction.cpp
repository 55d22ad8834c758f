// SPDX-License-Identifier: Apache-2.0
// Reductions over a set of axes.
#include <vector>

#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool axes_given(const OpView& v) { return v.inputs() > 1 || v.attrs().has(Attr::axes); }

bool axes_valid(const OpView& v) {
  const int rank = known_rank(v, 0);
  if (!v.attrs().has(Attr::axes)) return true;
  std::vector<bool> seen(kMaxRank, false);
  for (int64_t axis : v.attrs().ints(Attr::axes)) {
    if (rank < 0) continue;
    const std::optional<int> normal = normal_axis(axis, rank);
    if (!normal || seen[static_cast<size_t>(*normal)]) return false;
    seen[static_cast<size_t>(*normal)] = true;
  }
  return true;
}

/// The axes arrive only at execution: their number may be known before.
Status shape_without_axes(ShapeContext& c) {
  const int rank = c.rank(0);
  if (c.attrs().flag(Attr::keep_dims)) return c.set(0, Dims(rank, kUnknownDim));
  const Dims& axes = c.in(1);
  if (axes.size() != 1 || axes[0] < 0 || axes[0] > rank) {
    return c.wrong("`axes` must be 1-D with at most one entry an axis of `src`: " + both_texts(c, 0, 1));
  }
  return c.set(0, Dims(rank - static_cast<int>(axes[0]), kUnknownDim));
}

Status reduce_shape(ShapeContext& c) {
  if (!c.attrs().has(Attr::axes)) return shape_without_axes(c);
  const int rank = c.rank(0);
  std::vector<bool> reduced(kMaxRank, false);
  for (int64_t axis : c.attrs().ints(Attr::axes)) reduced[static_cast<size_t>(*normal_axis(axis, rank))] = true;
  Dims dst;
  for (int i = 0; i < rank; ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      dst.push_back(c.in(0)[i]);
    } else if (c.attrs().flag(Attr::keep_dims)) {
      dst.push_back(1);
    }
  }
  return c.set(0, dst);
}

constexpr OpDef reduction(OpKind kind, std::string_view name, std::string_view c_name, std::string_view summary) {
  return {.kind = kind,
          .name = name,
          .c_name = c_name,
          .summary = summary,
          .inputs = {{"src", "T1", "values"},
                     {"axes", "T2", "axes to reduce; wins over the attribute", Arity::optional, Attr::axes}},
          .outputs = {{"dst", "T1", "one value for each position of the other axes"}},
          .attrs = {optional(Attr::axes, AttrType::s64s, "axes to reduce; negative counts from the end"),
                    flag(Attr::keep_dims, false, "true: reduced axes stay as dims of 1")},
          .types = {{"T1", kFloats}, {"T2", kS32}},
          .checks = {{"axes_given", "`axes` must be given as attribute or input", axes_given},
                     {"axes_valid", "`axes` must be different and in [-rank, rank) of `src`", axes_valid}},
          .infer = reduce_shape,
          .step = StepKind::reduce};
}

}  // namespace

constexpr OpDef kReduceL1 = reduction(OpKind::ReduceL1, "ReduceL1", "reduce_l1", "Sum of absolute values over axes.");
constexpr OpDef kReduceL2 =
    reduction(OpKind::ReduceL2, "ReduceL2", "reduce_l2", "Root of the sum of squares over axes.");
constexpr OpDef kReduceMax = reduction(OpKind::ReduceMax, "ReduceMax", "reduce_max", "Greatest value over axes.");
constexpr OpDef kReduceMean = reduction(OpKind::ReduceMean, "ReduceMean", "reduce_mean", "Mean over axes.");
constexpr OpDef kReduceMin = reduction(OpKind::ReduceMin, "ReduceMin", "reduce_min", "Smallest value over axes.");
constexpr OpDef kReduceProd = reduction(OpKind::ReduceProd, "ReduceProd", "reduce_prod", "Product over axes.");
constexpr OpDef kReduceSum = reduction(OpKind::ReduceSum, "ReduceSum", "reduce_sum", "Sum over axes.");

}  // namespace partita
