// SPDX-License-Identifier: Apache-2.0
// Neighbourhood of views.
#include "passes/optimize/parts.hpp"

namespace partita {
namespace {

bool follows(const TensorDesc& before, const TensorDesc& next, int axis) {
  for (int d = 0; d < before.dims.size(); ++d)
    if (d != axis && before.dims[d] != next.dims[d]) return false;
  return next.offset == before.offset + before.dims[axis] * before.strides[axis];
}

}  // namespace

std::optional<int> axis_between(const TensorDesc& before, const TensorDesc& next) {
  if (before.dtype != next.dtype || before.strides != next.strides) return {};
  for (int d = 0; d < before.dims.size(); ++d)
    if (follows(before, next, d)) return d;
  return {};
}

}  // namespace partita
