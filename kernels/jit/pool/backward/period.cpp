// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of periods, and the walk over rows of them.
#include "kernels/jit/pool/backward/period.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

int64_t row_bytes(const PoolPlan& p, Isa isa) { return aligned(periods_of(p, 2) * PeriodKernel::window_bytes(p, isa)); }

}  // namespace

bool PeriodPool::fits(const Problem& problem) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (!p.maximum || !has_channel_last_periods(p) || PeriodKernel::streams_of(p) > kMostPeriodStreams) return false;
  // Cells and windows are reached by immediate numbers.
  const int64_t far = std::max(p.span(2), g.pads_begin[2] + g.strides[2]);
  const auto near = [&](const PoolOperand& o) { return std::abs(o.x) * far < INT32_MAX / 2; };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near) &&
         PeriodKernel::window_bytes(p, Isa::avx512) * p.reach(2) < INT32_MAX / 2;
}

PeriodPool::PeriodPool(const Problem& problem, const Target& target) : PeriodPool(problem, PoolPlan(problem), target) {}

PeriodPool::PeriodPool(const Problem& problem, const PoolPlan& plan, const Target& target)
    : PeriodWalk(problem, plan, target, plan.reach(1) * row_bytes(plan, target.isa),
                 exceeds_cache(problem) && plan.streams_cells(target.isa),
                 [&](const PoolPlan& p, const PeriodPart& rows, bool streaming) {
                   return std::make_shared<const PeriodKernel>(target.isa, p, problem, rows, streaming);
                 }),
      row_bytes_(row_bytes(plan, target.isa)) {}

void PeriodPool::run(const RunArgs& args, const PeriodKernel& kernel, int64_t plane, int64_t period,
                     std::byte* kept) const {
  const PoolPlan& p = plan();
  const PoolGeometry& g = p.g;
  std::array<const void*, kMostPeriodStreams> addresses;
  size_t count = 0;
  for (int64_t tap = 0; tap < g.kernel[1]; ++tap) {
    const int64_t y = period * g.strides[1] - g.pads_begin[1] + tap * g.dilations[1];
    addresses[count++] =
        p.in[0].at(args.in[0], plane / g.src[0], 0, plane % g.src[0], std::clamp<int64_t>(y, 0, g.src[1] - 1), 0);
  }
  count += place_period(p, args, plane, period, addresses.data() + count);
  const int64_t reach = p.reach(1);
  for (int64_t back = 0; back < reach; ++back) addresses[count++] = kept + (period + reach - back) % reach * row_bytes_;
  kernel({addresses.data()});
}

}  // namespace partita::jit
