// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of averages' periods, and the walk over rows of them.
#include "kernels/jit/pool/backward/average_period.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/plan.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

/// Of a row of gradients.
int64_t row_bytes(const PoolPlan& p) { return aligned(p.g.dst[2] * AveragePeriodKernel::window_bytes(p)); }

/// Of each row of windows.
std::vector<float> row_weights(const PoolPlan& p) {
  std::vector<float> weights(static_cast<size_t>(p.g.dst[1]), 0.0f);
  for (int64_t y = 0; y < p.g.src[1]; ++y)
    for (const RowCover& cover : p.row_covers(0, y)) weights[static_cast<size_t>(cover.y)] = cover.weight;
  return weights;
}

}  // namespace

bool AveragePeriodPool::fits(const Problem& problem, const Target& target) {
  const AveragePlan p(problem);
  if (target.isa != Isa::avx512 || p.adaptive || !AveragePeriodKernel::fits(p)) return false;
  if (AveragePeriodKernel::streams_of(p) > kMostPeriodStreams) return false;
  return !exceeds_cache(problem) || p.streams_cells(target.isa);
}

AveragePeriodPool::AveragePeriodPool(const Problem& problem, const Target& target)
    : AveragePeriodPool(problem, PoolPlan(problem), target) {}

AveragePeriodPool::AveragePeriodPool(const Problem& problem, const PoolPlan& plan, const Target& target)
    : PeriodWalk(problem, plan, target, row_bytes(plan) + plan.g.strides[1] * AveragePeriodKernel::window_bytes(plan),
                 exceeds_cache(problem),
                 [&](const PoolPlan& p, const PeriodPart& rows, bool streaming) {
                   return std::make_shared<const AveragePeriodKernel>(p, problem, rows, streaming);
                 }),
      row_weights_(row_weights(plan)),
      column_weights_(plan.column_weights()) {}

void AveragePeriodPool::run(const RunArgs& args, const AveragePeriodKernel& kernel, int64_t plane, int64_t period,
                            std::byte* kept) const {
  const PoolPlan& p = plan();
  std::array<const void*, kMostPeriodStreams> addresses;
  size_t count = place_period(p, args, plane, period, addresses.data());
  addresses[count++] = kept;
  addresses[count++] = kept + row_bytes(p);
  addresses[count++] = column_weights_.data();
  const auto window = static_cast<size_t>(std::min(period, p.g.dst[1] - 1));
  kernel({addresses.data(), row_weights_[window]});
}

}  // namespace partita::jit
