// SPDX-License-Identifier: Apache-2.0
// Choice of rows and lanes; entry: row_space().
#include "kernels/jit/rows/row_space.hpp"

#include <algorithm>

#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

SharedAxis single(size_t operands) { return {1, std::vector<int64_t>(operands, 0)}; }

bool joins(const SharedAxis& outer, const SharedAxis& inner) {
  for (size_t k = 0; k < outer.strides.size(); ++k)
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  return true;
}

SharedAxis taken_last(std::vector<SharedAxis>& axes, size_t operands) {
  if (axes.empty()) return single(operands);
  SharedAxis last = std::move(axes.back());
  axes.pop_back();
  return last;
}

}  // namespace

SharedAxis shared_axis(const Dims& dims, int d, const std::vector<SpaceOperand>& operands) {
  SharedAxis axis{dims[d], {}};
  for (const SpaceOperand& o : operands) axis.strides.push_back(o.desc.strides[d]);
  return axis;
}

std::vector<SharedAxis> joined_axes(const std::vector<SharedAxis>& axes) {
  std::vector<SharedAxis> joined;
  for (const SharedAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!joined.empty() && joins(joined.back(), axis)) {
      joined.back().extent *= axis.extent;
      joined.back().strides = axis.strides;
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

bool is_run(const SharedAxis& axis, const std::vector<SpaceOperand>& operands) {
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].per_result || axis.strides[k] == 1) continue;
    if (axis.strides[k] != 0 || operands[k].from == RowView::From::out) return false;
  }
  return true;
}

std::vector<RowView> views_of(const std::vector<SharedAxis>& outer, const SharedAxis& rows, const SharedAxis& lanes,
                              const std::vector<SpaceOperand>& operands) {
  std::vector<RowView> views;
  for (size_t k = 0; k < operands.size(); ++k) {
    const SpaceOperand& o = operands[k];
    const int64_t each = element_bytes(o.desc.dtype);
    RowView view{.from = o.from, .port = o.port, .dtype = o.desc.dtype};
    view.offset = o.desc.offset * each;
    for (const SharedAxis& axis : outer) view.outer.push_back(axis.strides[k] * each);
    view.row = rows.strides[k] * each;
    // A single lane is a run of one, whatever its stride says.
    view.lane = (lanes.extent == 1 && !o.per_result ? 1 : lanes.strides[k]) * each;
    view.steps = view.lane != 0;
    views.push_back(view);
  }
  return views;
}

const char* row_space(const Dims& dims, const std::vector<bool>& reduced, const std::vector<SpaceOperand>& operands,
                      RowSpace& space, bool runs) {
  std::vector<SharedAxis> inside, others;
  for (int d = 0; d < dims.size(); ++d)
    (reduced[static_cast<size_t>(d)] ? inside : others).push_back(shared_axis(dims, d, operands));
  inside = joined_axes(inside);
  if (inside.size() > 1) return "the reduced axes are not one run in memory";
  std::stable_sort(others.begin(), others.end(),
                   [](const SharedAxis& a, const SharedAxis& b) { return a.strides[0] > b.strides[0]; });
  others = joined_axes(others);
  SharedAxis along = inside.empty() ? single(operands.size()) : inside[0];
  const SharedAxis other = taken_last(others, operands.size());
  // Slices of one element are reduced side by side, as many as a vector has lanes.
  space.along_lanes = inside.empty() ? runs || !is_run(other, operands) : is_run(along, operands);
  if (!space.along_lanes && !is_run(other, operands)) return "neither reduced nor other elements lie in runs";
  const SharedAxis &rows = space.along_lanes ? other : along, &lanes = space.along_lanes ? along : other;
  space.outer = {};
  for (const SharedAxis& axis : others) space.outer.push_back(axis.extent);
  space.rows = rows.extent;
  space.lanes = lanes.extent;
  space.views = views_of(others, rows, lanes, operands);
  return nullptr;
}

}  // namespace partita::jit
