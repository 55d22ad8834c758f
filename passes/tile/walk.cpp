// SPDX-License-Identifier: Apache-2.0
// Walks of loops, products, softmax and gradients of poolings.
#include "passes/tile/walk.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/axes.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

std::vector<int> all_axes(int rank) {
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Walk loop_walk(const Problem& p) {
  Walk walk{p.out[0].dims, std::vector<bool>(static_cast<size_t>(p.out[0].dims.size()), true), {}, {}};
  walk.in.assign(p.in.size(), all_axes(walk.space.size()));
  walk.out.assign(p.out.size(), all_axes(walk.space.size()));
  for (const Instr& in : p.back.code) {
    if (fold_of(in.op) == Fold::none) continue;
    const TensorDesc& folded = p.out[static_cast<size_t>(in.imm)];
    for (int d = 0; d < walk.space.size(); ++d)
      if (folded.strides[d] == 0 && walk.space[d] > 1) walk.free[static_cast<size_t>(d)] = false;
  }
  return walk;
}

/// All operands have the dims of the source, or 1 along the axis.
std::optional<Walk> softmax_walk(const Problem& p) {
  const Dims& space = p.in[0].dims;
  const auto axis = normal_axis(p.attrs.i64_or(Attr::axis, -1), space.size());
  if (!axis) return std::nullopt;
  Walk walk{space, std::vector<bool>(static_cast<size_t>(space.size()), true), {}, {}};
  walk.free[static_cast<size_t>(*axis)] = false;
  for (const auto* side : {&p.in, &p.out})
    for (const TensorDesc& t : *side)
      if (t.dims.size() != space.size()) return std::nullopt;
  walk.in.assign(p.in.size(), all_axes(space.size()));
  walk.out.assign(p.out.size(), all_axes(space.size()));
  return walk;
}

/// The space of a product: batch axes, rows, columns, and last the axis that is summed.
std::optional<Walk> matmul_walk(const Problem& p) {
  const Dims& dst = p.out[0].dims;
  const int rank = dst.size(), rows = rank - 2, columns = rank - 1, summed = rank;
  if (p.in[0].dims.size() < 2 || p.in[1].dims.size() < 2 || rank < 2 || rank >= kMaxRank) return std::nullopt;
  Walk walk{dst, std::vector<bool>(static_cast<size_t>(rank), true), {}, {all_axes(rank)}};
  walk.free.push_back(false);
  const auto matrix = [&](const TensorDesc& t, int first, int second, bool transposed) {
    const int own = t.dims.size();
    std::vector<int> axes;
    for (int d = 0; d < own - 2; ++d) {
      const int at = d + rank - own;
      axes.push_back(t.dims[d] == 1 && dst[at] != 1 ? -1 : at);
    }
    axes.push_back(transposed ? second : first);
    axes.push_back(transposed ? first : second);
    return axes;
  };
  const bool a_transposed = p.attrs.flag_or(Attr::transpose_a, false);
  walk.space.push_back(p.in[0].dims[p.in[0].dims.size() - (a_transposed ? 2 : 1)]);
  walk.in.push_back(matrix(p.in[0], rows, summed, a_transposed));
  walk.in.push_back(matrix(p.in[1], summed, columns, p.attrs.flag_or(Attr::transpose_b, false)));
  for (size_t k = 2; k < p.in.size(); ++k) {
    std::vector<int> axes;
    const Dims& dims = p.in[k].dims;
    for (int d = 0; d < dims.size(); ++d) {
      const int at = d + rank - dims.size();
      axes.push_back(dims[d] == 1 && dst[at] != 1 ? -1 : at);
    }
    walk.in.push_back(std::move(axes));
  }
  return walk;
}

/// Gradients of poolings: batch and channels are free, windows keep cells together.
std::optional<Walk> pool_backward_walk(const Problem& p) {
  const Dims& space = p.out[0].dims;
  const int rank = space.size(), channel = channel_axis(p.attrs, rank);
  Walk walk{space, std::vector<bool>(static_cast<size_t>(rank), false), {}, {}};
  std::vector<int> axes(static_cast<size_t>(rank), -1);
  for (int free : {0, channel}) {
    walk.free[static_cast<size_t>(free)] = true;
    axes[static_cast<size_t>(free)] = free;
  }
  for (const TensorDesc& t : p.in)
    if (t.dims.size() != rank) return std::nullopt;
  walk.in.assign(p.in.size(), axes);
  walk.out.assign(p.out.size(), all_axes(rank));
  return walk;
}

}  // namespace

std::optional<Walk> walk_of(const Problem& problem) {
  for (const auto* side : {&problem.in, &problem.out})
    for (const TensorDesc& t : *side)
      if (elements(t.dims) == 0) return std::nullopt;
  switch (problem.step) {
    case StepKind::loop: return loop_walk(problem);
    case StepKind::softmax:
    case StepKind::softmax_backward: return softmax_walk(problem);
    case StepKind::matmul: return matmul_walk(problem);
    case StepKind::pool_backward:
    case StepKind::max_pool_backward: return pool_backward_walk(problem);
    default: return std::nullopt;
  }
}

}  // namespace partita
