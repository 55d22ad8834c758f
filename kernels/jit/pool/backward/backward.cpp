// SPDX-License-Identifier: Apache-2.0
// What generated pooling gradients accept; the choice of the walk.
#include "kernels/jit/pool/backward/backward.hpp"

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/channel_first.hpp"
#include "kernels/jit/pool/average/channel_last.hpp"
#include "kernels/jit/pool/average/plane.hpp"
#include "kernels/jit/pool/average/rows.hpp"
#include "kernels/jit/pool/backward/average_period.hpp"
#include "kernels/jit/pool/backward/channel_first.hpp"
#include "kernels/jit/pool/backward/channel_last.hpp"
#include "kernels/jit/pool/backward/far_maximum.hpp"
#include "kernels/jit/pool/backward/period.hpp"
#include "kernels/jit/pool/backward/plane_period.hpp"
#include "kernels/jit/pool/backward/repeat.hpp"
#include "kernels/jit/pool/backward/whole_plane.hpp"
#include "kernels/jit/pool/backward/window.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/jit/pool/picked.hpp"
#include "kernels/jit/pool/turned.hpp"
#include "kernels/jit/rows/global_maximum.hpp"
#include "src/base/axes.hpp"

namespace partita::jit {
namespace {

/// What one kernel spells out: taps of a window; windows over the cells of a period.
constexpr int64_t kMaxTaps = 512, kMaxTerms = 1024;

const char* refuse_expression(const Expr& e, const Problem& p) {
  if (const char* reason = refuse_placeless(e, p)) return reason;
  for (const Instr& in : e.code) {
    if (in.op == ExprOp::load && !Emitter::loads(p.in[static_cast<size_t>(in.imm)].dtype))
      return "an operand's type has no generated conversion";
  }
  return nullptr;
}

const char* refuse_windows(const PoolPlan& plan) {
  const PoolGeometry& g = plan.g;
  const int64_t row_terms = plan.maximum ? plan.reach(0) * plan.reach(1) : 1;
  if (row_terms * plan.reach(2) * g.strides[2] > kMaxTerms) return "too many windows cover one cell";
  if (plan.maximum && plan.tap_rows() * g.kernel[2] > kMaxTaps) return "the window has too many taps";
  return nullptr;
}

/// Null where there are no folds, or the walk that is chosen takes them.
const char* refuse_folds_of(const PoolPlan& plan, const Problem& p, const Target& target) {
  if (!plan.has_folds()) return nullptr;
  if (const char* reason = PoolFolds::refuse(p)) return reason;
  const bool takes = WindowPool::fits(p, target) || PlanePeriodPool::fits(p, target) || PeriodPool::fits(p) ||
                     AveragePeriodPool::fits(p, target) || AverageRowsPool::fits(p, target) ||
                     AverageLastPool::fits(p) || AveragePlanePool::fits(p) || AverageFirstPool::fits(p);
  return takes ? nullptr : "nothing folds what windows like these make";
}

/// Windows along x below which rows fill vectors too badly. Maxima of 16 bits are searched twice as many at once, and
/// where windows lie apart nothing is read twice.
int64_t least_width(const PoolPlan& p, const Problem& problem) {
  if (bits_of(problem.out[0].dtype) == 32) return 8;
  return p.g.tiles_source() ? 12 : 16;
}

/// What is faster turned, channels first: where rows are narrow, and maxima that would go through tiles.
bool is_turned(const PoolPlan& p, const Problem& problem, const Target& target) {
  if (p.channel_last || p.has_folds() || p.indices >= 0 || p.g.covers_all()) return false;
  const bool narrow = p.g.dst[2] < least_width(p, problem);
  if (problem.op == OpKind::MaxPoolBackward)
    return narrow || !(WindowPool::fits(problem, target) || FarMaximumPool::fits(problem, target) ||
                       PlanePeriodPool::fits(problem, target));
  return problem.op == OpKind::AvgPoolBackward && narrow && !p.g.tiles_source() && !AveragePlanePool::fits(problem) &&
         !AverageRowsPool::fits(problem, target);
}

}  // namespace

const char* refuse_pool_backward(const Problem& p, const Target& target) {
  if (refuse_global_maximum(p, target) == nullptr) return nullptr;
  const PoolPlan plan(p);
  for (const Expr* e : {&plan.front, &plan.back})
    if (const char* reason = refuse_expression(*e, p)) return reason;
  if (plan.maximum && !Emitter::loads(p.in[0].dtype)) return "the source's type has no generated conversion";
  for (const TensorDesc& desc : p.out)
    if (!Emitter::stores(desc.dtype)) return "a result's type has no generated conversion";
  if (!FarMaximumPool::fits(p, target))
    if (const char* reason = refuse_windows(plan)) return reason;
  if (const char* reason = refuse_folds_of(plan, p, target)) return reason;
  return PoolStages::refuse(plan);
}

bool is_picked(const Problem& problem, const Target& target) {
  if (!channels_last(problem.attrs)) {
    constexpr int64_t kLeastCells = 8, kMostCells = 15;
    const Dims& dims = problem.out[0].dims;
    const int64_t cells = dims[dims.size() - 1];
    if (cells < kLeastCells || cells > kMostCells || AveragePlanePool::fits(problem)) return false;
    const bool large = exceeds_cache(problem), halves = bits_of(problem.out[0].dtype) < 32;
    if (halves && !large) return false;
    if ((halves || !large) && AverageRowsPool::fits(problem, target)) return false;
  }
  return PickedPool::fits(problem, target.isa);
}

bool is_side_by_side(const Problem& problem, const Target& target) {
  const PoolPlan p(problem);
  return p.g.dst[2] < least_width(p, problem) && !p.g.covers_all() &&
         PlanePeriodPool::fits_side_by_side(problem, target);
}

std::optional<Problem> turned_group(const Problem& problem, const Target& target) {
  if (!is_turned(PoolPlan(problem), problem, target) || is_side_by_side(problem, target)) return std::nullopt;
  auto group = TurnedPool::of_group(problem);
  return group && refuse_pool_backward(*group, target) == nullptr ? std::move(group) : std::nullopt;
}

Result<Run> make_pool_backward(const Problem& problem, const Target& target) {
  const bool global = refuse_global_maximum(problem, target) == nullptr;
  if (global && WholePlanePool::fits(problem, target)) return run_of<WholePlanePool>(problem, target);
  if (global && !WindowPool::fits_halves(problem, target)) return make_global_maximum(problem, target);
  if (RepeatPool::fits(problem, target)) return run_of<RepeatPool>(problem, target);
  if (is_picked(problem, target)) return run_of<PickedPool>(problem, target);
  if (AverageRowsPool::fits(problem, target)) return run_of<AverageRowsPool>(problem, target);
  if (is_side_by_side(problem, target)) return run_of<PlanePeriodPool>(problem, target);
  if (const auto group = turned_group(problem, target)) return make_turned(problem, *group, target, make_pool_backward);
  if (WindowPool::fits(problem, target)) return run_of<WindowPool>(problem, target);
  if (FarMaximumPool::fits(problem, target)) return run_of<FarMaximumPool>(problem, target);
  if (PlanePeriodPool::fits(problem, target)) return run_of<PlanePeriodPool>(problem, target);
  if (PeriodPool::fits(problem)) return run_of<PeriodPool>(problem, target);
  if (AveragePeriodPool::fits(problem, target)) return run_of<AveragePeriodPool>(problem, target);
  if (AverageLastPool::fits(problem)) return run_of<AverageLastPool>(problem, target);
  if (AveragePlanePool::fits(problem)) return run_of<AveragePlanePool>(problem, target);
  if (AverageFirstPool::fits(problem)) return run_of<AverageFirstPool>(problem, target);
  return channels_last(problem.attrs) ? run_of<ChannelLastPool>(problem, target)
                                      : run_of<ChannelFirstPool>(problem, target);
}

bool fits_adaptive_average(const Problem& problem, const Target& target) {
  return problem.op == OpKind::AdaptiveAvgPoolBackward && refuse_pool_backward(problem, target) == nullptr &&
         (AverageLastPool::fits(problem) || AverageFirstPool::fits(problem));
}

}  // namespace partita::jit
