// SPDX-License-Identifier: Apache-2.0
// Two ways from indices to a gradient. Indices of a pooling name cells near their windows: then every cell gathers what
// names it (pool_channel_gather.hpp, pool_plane_gather.hpp), in one pass over memory. Indices may name any cell,
// though: what the gather does not find shows in its count, and then gradients are scattered (pool_scatter.hpp), which
// also tells which index is wrong.
#include "kernels/jit/pool_from_indices.hpp"

#include <algorithm>
#include <memory>

#include "kernels/jit/pool_channel_gather.hpp"
#include "kernels/jit/pool_plane_gather.hpp"
#include "kernels/jit/pool_scatter.hpp"
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

template <class Gather>
Result<Run> gathering(const Problem& problem, const Target& target, Run scatter) {
  try {
    auto gather = std::make_shared<const Gather>(problem, target);
    Run run;
    run.scratch_bytes = std::max(scatter.scratch_bytes, gather->scratch_bytes());
    run.call = [gather = std::move(gather), scatter = std::move(scatter.call)](const RunArgs& args) {
      const auto reach = gather->reach(args);
      if (reach && (!overlap(args) || (*gather)(args, *reach, false)) && (*gather)(args, *reach, true)) return Status{};
      return scatter(args);
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
  PT_ASSIGN(Run scatter, make_pool_scatter(problem, target));
  if (ChannelGather::fits(problem)) return gathering<ChannelGather>(problem, target, std::move(scatter));
  if (PlaneGather::fits(problem)) return gathering<PlaneGather>(problem, target, std::move(scatter));
  return scatter;
}

}  // namespace partita::jit
