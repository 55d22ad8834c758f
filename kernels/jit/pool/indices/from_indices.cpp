// SPDX-License-Identifier: Apache-2.0
// Ways from indices to a gradient. Indices of a pooling name cells near their windows: then every cell gathers what
// names it (channel_gather.hpp, plane_gather.hpp), in one pass over memory; where windows seem to cover every cell
// once, or to be one cell longer than their stride, as gradients of such poolings do (pool/backward/window.hpp,
// pool/backward/plane_period.hpp). Indices may name any cell, though: what the gather does not find shows in its count,
// and then gradients are scattered (scatter.hpp), which also tells which index is wrong.
#include "kernels/jit/pool/indices/from_indices.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/backward/plane_period.hpp"
#include "kernels/jit/pool/backward/window.hpp"
#include "kernels/jit/pool/indices/channel_gather.hpp"
#include "kernels/jit/pool/indices/plane_gather.hpp"
#include "kernels/jit/pool/indices/scatter.hpp"
#include "src/base/check.hpp"

namespace partita::jit {
namespace {

/// An output that lies over an operand leaves nothing for a second pass.
bool overlap(const RunArgs& args) {
  return std::ranges::any_of(args.out,
                             [&](const void* out) { return std::ranges::find(args.in, out) != args.in.end(); });
}

/// A way that may do.
struct Gather {
  size_t scratch_bytes;
  bool counts_first;  ///< whether it can tell without storing anything
  std::function<bool(const IndexReach&)> takes;
  /// False: not every index named a cell that was looked at.
  std::function<bool(const RunArgs&, const IndexReach&, bool stores)> run;
};

template <class Made>
Gather near_indices(std::shared_ptr<const Made> made) {
  return {made->scratch_bytes(), true, [made](const IndexReach& reach) { return made->takes(reach); },
          [made](const RunArgs& args, const IndexReach& reach, bool stores) { return (*made)(args, reach, stores); }};
}

/// A gradient of windows that indices may come from.
template <class Made>
Gather of_windows(std::shared_ptr<const Made> made, size_t scratch_bytes) {
  const auto takes = [made](const IndexReach& reach) {
    const PoolGeometry& g = made->plan().g;
    for (int i = 0; i < 3; ++i)
      if (const auto axis = static_cast<size_t>(i);
          reach.low[axis] < -g.pads_begin[i] || reach.high[axis] >= g.kernel[i] - g.pads_begin[i])
        return false;
    return true;
  };
  return {scratch_bytes, false, takes,
          [made](const RunArgs& args, const IndexReach&, bool) { return made->from_indices(args); }};
}

/// The cheapest first.
std::vector<Gather> gathers_of(const Problem& problem, const Target& target) {
  std::vector<Gather> list;
  if (ChannelGather::fits(problem)) {
    list.push_back(near_indices(std::make_shared<const ChannelGather>(problem, target)));
    return list;
  }
  if (WindowPool::fits(problem, target))
    list.push_back(of_windows(std::make_shared<const WindowPool>(problem, target), 0));
  for (const int64_t pad : {1, 0}) {
    const AssumedWindows assumed{.overlap = 1, .pad = pad};
    if (!PlanePeriodPool::fits(problem, target, assumed)) continue;
    auto pool = std::make_shared<const PlanePeriodPool>(problem, target, assumed);
    const size_t scratch_bytes = pool->scratch_bytes();
    list.push_back(of_windows(std::move(pool), scratch_bytes));
  }
  if (PlaneGather::fits(problem)) list.push_back(near_indices(std::make_shared<const PlaneGather>(problem, target)));
  return list;
}

}  // namespace

const char* refuse_pool_from_indices(const Problem& problem, const Target& target) {
  return refuse_pool_scatter(problem, target);
}

Result<Run> make_pool_from_indices(const Problem& problem, const Target& target) {
  PT_ASSIGN(Run run, make_pool_scatter(problem, target));
  try {
    std::vector<Gather> gathers = gathers_of(problem, target);
    if (gathers.empty()) return run;
    for (const Gather& gather : gathers) run.scratch_bytes = std::max(run.scratch_bytes, gather.scratch_bytes);
    const PoolGeometry g = with_three_axes(pool_geometry(problem, problem.out[0].dims, problem.in[0].dims));
    run.call = [g, base = pool_index(problem.attrs, g), indices = pool_view(problem.in[1], g.channel_last),
                gathers = std::move(gathers), scatter = std::move(run.call)](const RunArgs& args) {
      const auto reach = sampled_reach(g, base, indices, args.in[1]);
      const bool twice = overlap(args);
      const auto gather = std::ranges::find_if(
          gathers, [&](const Gather& one) { return reach && one.takes(*reach) && (!twice || one.counts_first); });
      if (gather == gathers.end()) return scatter(args);
      if ((!twice || gather->run(args, *reach, false)) && gather->run(args, *reach, true)) return Status{};
      return scatter(args);
    };
    return run;
  } catch (const Xbyak::Error& e) {
    return status_of(e);
  }
}

}  // namespace partita::jit
