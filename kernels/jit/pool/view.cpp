// SPDX-License-Identifier: Apache-2.0
// Views of pooling operands.
#include "kernels/jit/pool/view.hpp"

#include <limits>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

float lowest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return -0x1.fep127f;
    case Dtype::f16: return -65504;
    case Dtype::s8: return -128;
    case Dtype::u8: return 0;
    default: return std::numeric_limits<float>::lowest();
  }
}

}  // namespace

int64_t PoolView::element_bytes() const { return partita::element_bytes(dtype); }

PoolView pool_view(const TensorDesc& desc, bool channel_last) {
  PoolView view{.dtype = desc.dtype};
  const int64_t each = view.element_bytes();
  view.offset = desc.offset * each;
  const int rank = desc.dims.size();
  if (rank == 0) return view;
  const auto stride = [&](int axis) { return desc.strides[axis] * each; };
  const int last_spatial = channel_last ? rank - 2 : rank - 1, axes = rank - 2;
  view.n = stride(0);
  view.c = stride(channel_last ? rank - 1 : 1);
  if (axes > 0) view.x = stride(last_spatial);
  if (axes > 1) view.y = stride(last_spatial - 1);
  if (axes > 2) view.z = stride(last_spatial - 2);
  return view;
}

ForwardPool forward_pool(const Problem& problem) {
  ForwardPool p;
  p.g = with_three_axes(pool_geometry(problem, problem.in[0].dims, problem.out[0].dims));
  p.front = front_expression(problem);
  p.back = back_expression(problem);
  p.front_in = loaded_operands(p.front);
  p.back_in = loaded_operands(p.back);
  for (const TensorDesc& desc : problem.in) p.in.push_back(pool_view(desc, p.g.channel_last));
  for (const TensorDesc& desc : problem.out) p.out.push_back(pool_view(desc, p.g.channel_last));
  p.lowest = lowest_of(problem.in[0].dtype);
  p.divides = is_integer(problem.in[0].dtype) || is_integer(problem.out[0].dtype);
  return p;
}

bool may_stream(const ForwardPool& pool, const Problem& problem) {
  for (const PoolView& v : pool.out)
    for (int64_t distance : {v.offset, v.n, pool.g.channel_last ? v.x : v.c, v.z, v.y})
      if (distance % kCacheLine != 0) return false;
  return exceeds_cache(problem);
}

std::optional<RowWalk> row_walk(const PoolView& view, int64_t extent, int64_t distance) {
  if (extent == 1 || distance == view.element_bytes()) return RowWalk::next;
  if (distance == 0) return RowWalk::same;
  return std::nullopt;
}

std::optional<RowWalk> joined_walk(const PoolView& view, int64_t cells, int64_t channels) {
  const int64_t each = view.element_bytes();
  if ((channels == 1 || view.c == each) && (cells == 1 || view.x == channels * each)) return RowWalk::next;
  if ((channels == 1 || view.c == 0) && (cells == 1 || view.x == 0)) return RowWalk::same;
  return std::nullopt;
}

std::optional<int64_t> even_distance(const PoolView& view, const Dims& extents) {
  const int64_t distances[] = {view.z, view.y, view.x};
  std::optional<int64_t> even;
  int64_t cells = 1;
  for (int i = 2; i >= 0; --i) {
    if (extents[i] == 1) continue;
    if (!even) even = distances[i];
    if (distances[i] != *even * cells) return std::nullopt;
    cells *= extents[i];
  }
  return even.value_or(0);
}

}  // namespace partita::jit
