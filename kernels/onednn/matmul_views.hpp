// SPDX-License-Identifier: Apache-2.0
// The operands of a MatMul as matrices with as few batch axes as possible.
#pragma once

#include <vector>

#include "kernels/problem.hpp"

namespace partita::onednn {

/// All of one rank: batch axes, then rows and columns; axes of size 1 are broadcast.
struct MatmulViews {
  TensorDesc a, b, dst;
  std::vector<TensorDesc> bias;      ///< none or one
  std::vector<TensorDesc> operands;  ///< others that lie over dst
};

/// Transposes become strides, missing axes become axes of size 1; batch axes get the order of the result's memory, and
/// those that can be merged with each other or with the rows are.
/// `operands` have the rank of the result, and size 1 where they repeat.
MatmulViews matmul_views(const Problem& problem, const TensorDesc& a, const TensorDesc& b,
                         std::vector<TensorDesc> operands);

}  // namespace partita::onednn
