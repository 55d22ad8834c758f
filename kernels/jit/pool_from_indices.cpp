// SPDX-License-Identifier: Apache-2.0
// Ways from indices to a gradient. Indices of a pooling name cells near their windows: then every cell gathers what
// names it (pool_channel_gather.hpp, pool_plane_gather.hpp), in one pass over memory; where windows seem to cover every
// cell once, as gradients of such poolings do (pool_window.hpp). Indices may name any cell, though: what the gather
// does not find shows in its count, and then gradients are scattered (pool_scatter.hpp), which also tells which index
// is wrong.
#include "kernels/jit/pool_from_indices.hpp"

#include <algorithm>
#include <memory>

#include "kernels/jit/pool_channel_gather.hpp"
#include "kernels/jit/pool_plane_gather.hpp"
#include "kernels/jit/pool_scatter.hpp"
#include "kernels/jit/pool_window.hpp"
#include "kernels/jit/row_kernel.hpp"
#include "kernels/jit/run_of.hpp"
#include "src/base/check.hpp"

namespace partita::jit {
namespace {

/// An output that lies over an operand leaves nothing for a second pass.
bool overlap(const RunArgs& args) {
  return std::ranges::any_of(args.out,
                             [&](const void* out) { return std::ranges::find(args.in, out) != args.in.end(); });
}

/// Gradients of whole windows, from indices.
class WindowGather {
 public:
  static bool fits(const Problem& problem) { return WindowPool::fits(problem); }
  WindowGather(const Problem& problem, const Target& target)
      : pool_(problem, target), indices_(pool_view(problem.in[1], pool_.plan().g.channel_last)) {}
  size_t scratch_bytes() const { return 0; }
  std::optional<IndexReach> reach(const RunArgs& args) const {
    const PoolPlan& p = pool_.plan();
    auto found = sampled_reach(p.g, p.base, indices_, args.in[1]);
    for (size_t i = 0; i < 3 && found; ++i)
      if (found->low[i] < 0 || found->high[i] >= p.g.kernel[static_cast<int>(i)]) return std::nullopt;
    return found;
  }
  bool operator()(const RunArgs& args, const IndexReach&, bool stores) const {
    return stores && pool_.from_indices(args);
  }

 private:
  WindowPool pool_;
  PoolView indices_;
};

/// The gather, and `otherwise` where it does not find everything.
template <class Gather>
Result<Run> gathering(const Problem& problem, const Target& target, Run otherwise) {
  try {
    auto gather = std::make_shared<const Gather>(problem, target);
    Run run;
    run.scratch_bytes = std::max(otherwise.scratch_bytes, gather->scratch_bytes());
    run.call = [gather = std::move(gather), otherwise = std::move(otherwise.call)](const RunArgs& args) {
      const auto reach = gather->reach(args);
      if (reach && (!overlap(args) || (*gather)(args, *reach, false)) && (*gather)(args, *reach, true)) return Status{};
      return otherwise(args);
    };
    return run;
  } catch (const Xbyak::Error& e) {
    return fail(Code::out_of_memory, std::string("no code could be generated: ") + e.what());
  }
}

}  // namespace

const char* refuse_pool_from_indices(const Problem& problem, const Target& target) {
  return refuse_pool_scatter(problem, target);
}

Result<Run> make_pool_from_indices(const Problem& problem, const Target& target) {
  PT_ASSIGN(Run run, make_pool_scatter(problem, target));
  if (ChannelGather::fits(problem)) return gathering<ChannelGather>(problem, target, std::move(run));
  if (PlaneGather::fits(problem)) {
    PT_ASSIGN(run, gathering<PlaneGather>(problem, target, std::move(run)));
  }
  if (WindowGather::fits(problem)) return gathering<WindowGather>(problem, target, std::move(run));
  return run;
}

}  // namespace partita::jit
