// SPDX-License-Identifier: Apache-2.0
// From a PoolCase to a problem.
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

StepKind step_of(OpKind op) {
  switch (op) {
    case OpKind::AvgPoolBackward: return StepKind::pool_backward;
    case OpKind::MaxPoolBackward: return StepKind::max_pool_backward;
    default: return StepKind::pool_forward;
  }
}

}  // namespace

Problem pool_without_tensors(const PoolCase& pool) {
  Problem p = problem_for(step_of(pool.op), pool.op);
  p.attrs = window_attrs(pool.windows, pool.channel_last);
  p.attrs.set(Attr::kernel, pool.windows.kernel);
  if (pool.op == OpKind::AvgPool || pool.op == OpKind::AvgPoolBackward)
    p.attrs.set(Attr::exclude_pad, pool.exclude_pad);
  return p;
}

Problem pool_problem(const PoolCase& pool) {
  Problem p = pool_without_tensors(pool);
  const auto tensor = [&](const std::vector<int64_t>& spatial) {
    return dense_desc(pool.dtype, activation_dims(pool.batch, pool.channels, spatial, pool.channel_last));
  };
  const TensorDesc wide = tensor(pool.windows.wide), narrow = tensor(pool.windows.narrow);
  const bool backward = p.step != StepKind::pool_forward;
  if (p.step == StepKind::max_pool_backward) p.in.push_back(wide);
  p.in.push_back(backward ? narrow : wide);
  p.out.push_back(backward ? wide : narrow);
  return p;
}

}  // namespace partita::test
