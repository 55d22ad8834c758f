// SPDX-License-Identifier: Apache-2.0
// PoolCase: a pooling as a problem. What windows a test draws is its own business: kernels take different ones.
#pragma once

#include "tests/support/random_windows.hpp"

namespace partita::test {

struct PoolCase {
  OpKind op = OpKind::AvgPool;  ///< AvgPool, MaxPool, or the gradient of either
  Geometry windows = {};
  bool channel_last = false;
  Dtype dtype = Dtype::f32;
  int64_t batch = 1, channels = 1;
  bool exclude_pad = true;  ///< of averages
};

/// The gradient of a maximum or of an average.
constexpr OpKind pool_gradient(bool maximum) { return maximum ? OpKind::MaxPoolBackward : OpKind::AvgPoolBackward; }
/// The step and the attributes, without tensors.
Problem pool_without_tensors(const PoolCase& pool);
/// All tensors dense.
Problem pool_problem(const PoolCase& pool);

}  // namespace partita::test
