// SPDX-License-Identifier: Apache-2.0
// The operands of a MatMul as matrices with as few batch axes as possible.
#pragma once

#include <vector>

#include "kernels/problem.hpp"

namespace partita::onednn {

/// All of one rank: batch axes, then rows and columns; axes of size 1 are broadcast.
struct MatmulViews {
  TensorDesc a, b, dst;
  std::vector<TensorDesc> bias;  ///< none or one
};

/// Transposes become strides, missing axes become axes of size 1; then batch axes that can be merged with each other or
/// with the rows are.
MatmulViews matmul_views(const Problem& problem);

}  // namespace partita::onednn
