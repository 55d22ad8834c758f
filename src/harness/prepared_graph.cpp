// SPDX-License-Identifier: Apache-2.0
// Preparation once, execution many times.
#include "src/harness/prepared_graph.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita {

PreparedGraph::PreparedGraph(graph g, int threads, const engine& on)
    : graph_(std::make_unique<graph>(std::move(g))),
      engine_(on),
      stream_(engine_, threads),
      tensors_(*graph_->form()) {}

Result<PreparedGraph> PreparedGraph::make(graph g, Policy policy, int threads, uint64_t seed, const engine& on) {
  PT_TRY(g.finalize());
  const ThreadScope scope(threads);
  PreparedGraph made(std::move(g), threads, on);
  PT_ASSIGN(const auto partitions, made.graph_->get_partitions(policy));
  PT_TRY(made.tensors_.fill_inputs(seed));
  size_t scratch_bytes = 0;
  for (const partition& p : partitions) {
    Part part{p, {}};
    if (p.supported()) {
      PT_ASSIGN(part.bound, made.tensors_.bind(p, made.engine_));
      scratch_bytes = std::max(scratch_bytes, part.bound.compiled.scratchpad_bytes());
    }
    made.parts_.push_back(std::move(part));
  }
  made.scratch_ = Storage(logical_tensor(0, Dtype::u8, Dims{static_cast<int64_t>(scratch_bytes)}));
  if (!made.scratch_.data) return fail(Code::out_of_memory, str("no memory for ", scratch_bytes, " bytes of scratch"));
  return made;
}

Status PreparedGraph::execute() {
  for (const Part& part : parts_)
    if (part.group.supported())
      PT_TRY(part.bound.compiled.execute(stream_, part.bound.inputs, part.bound.outputs, scratch_.data.get()));
  return {};
}

size_t PreparedGraph::bytes() const {
  size_t sum = 0;
  for (const Part& part : parts_) sum += part.bound.bytes();
  return sum;
}

}  // namespace partita
