// SPDX-License-Identifier: Apache-2.0
// Row space: a tensor space whose axes are partly reduced, seen as rows and lanes that generated code walks.
#pragma once

#include <vector>

#include "kernels/problem.hpp"

namespace partita::jit {

/// A tensor, or scratch memory, as a walk over rows and lanes sees it. Distances are in bytes.
struct RowView {
  enum class From : uint8_t { in, out, scratch, kernel };
  From from = From::scratch;
  int port = 0;  ///< of in or out
  Dtype dtype = Dtype::f32;
  bool steps = true;  ///< one element for each lane, else one for all lanes of a row
  int64_t offset = 0;
  Dims outer = {};
  int64_t row = 0, lane = 0;
  int64_t block = 0;            ///< from one block of lanes to the next
  bool previous = false;        ///< of the tile before the one that is swept
  const void* table = nullptr;  ///< the kernel's own, the same for every execution
};

/// A tensor over the whole space, or over the space without its reduced axes (strides 0 there: one number a result).
struct SpaceOperand {
  RowView::From from;
  int port;
  TensorDesc desc;
  bool per_result = false;
};

/// Lanes are next to each other in memory. Either the reduced elements are the lanes (then each row has a result), or
/// they are the rows (then each lane has one).
struct RowSpace {
  bool along_lanes = true;
  Dims outer;
  int64_t rows = 1, lanes = 1;
  std::vector<RowView> views;  ///< of the operands, in their order
};

/// Fills `space`; the first operand is a result and decides the order of the walk. `runs`: slices of one element are
/// runs, as others may be. Null, or why generated code cannot walk the operands.
const char* row_space(const Dims& dims, const std::vector<bool>& reduced, const std::vector<SpaceOperand>& operands,
                      RowSpace& space, bool runs);

/// An axis that several operands share, with the stride of each.
struct SharedAxis {
  int64_t extent;
  std::vector<int64_t> strides;
};
/// Axis `d` of the operands.
SharedAxis shared_axis(const Dims& dims, int d, const std::vector<SpaceOperand>& operands);
/// The axes without those of extent 1, neighbours joined where every operand walks them as one.
std::vector<SharedAxis> joined_axes(const std::vector<SharedAxis>& axes);
/// Whether elements along the axis are next to each other in every operand that has one for each place; `repeats`: an
/// input may have one element for the whole axis.
bool is_run(const SharedAxis& axis, const std::vector<SpaceOperand>& operands);

/// Each operand's view: `outer` axes, then a row axis and a lane axis.
std::vector<RowView> views_of(const std::vector<SharedAxis>& outer, const SharedAxis& rows, const SharedAxis& lanes,
                              const std::vector<SpaceOperand>& operands);

}  // namespace partita::jit
