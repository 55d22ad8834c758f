// SPDX-License-Identifier: Apache-2.0
// The compiler on one screen: partition -> subgraph -> program -> kernels -> memory -> executable.
#include "src/compile/compile.hpp"

#include <algorithm>

#include "passes/commute.hpp"
#include "passes/lower/lower.hpp"
#include "passes/mark_constants.hpp"
#include "passes/optimize/drop_copies.hpp"
#include "passes/optimize/fuse_loops.hpp"
#include "passes/optimize/join_copies.hpp"
#include "passes/optimize/through_concats.hpp"
#include "passes/optimize/untangle.hpp"
#include "passes/plan.hpp"
#include "passes/select.hpp"
#include "passes/tile/tile.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/base/warn.hpp"

namespace partita {

namespace {

Result<Compiled> compile_for(const Target& target, const Partition& partition, const Given& given) {
  PT_ASSIGN(Specialized specialized, specialize(partition, given));
  if (!specialized.waits_for.empty()) return Compiled{nullptr, std::move(specialized.waits_for)};
  Subgraph& subgraph = specialized.graph;
  commute_pools(subgraph);

  auto executable = std::make_shared<Executable>();
  PT_ASSIGN(executable->program, lower(subgraph, target));
  PT_TRY(tile(executable->program, target));
  drop_copies(executable->program);
  move_through_concats(executable->program);
  fuse_loops(executable->program, target);
  untangle(executable->program, target);
  join_copies(executable->program, target);
  mark_constants(executable->program);
  PT_TRY(select_kernels(executable->program, target));
  plan_memory(executable->program);

  if (executable->program.kept_bytes > 0) executable->kept = std::make_shared<KeptConstants>();
  executable->threads = target.threads;
  for (const Step& step : executable->program.steps) executable->team = std::max(executable->team, step.run.team);
  executable->checks = subgraph.checks;
  for (int v : subgraph.inputs) executable->inputs.push_back(subgraph.values[static_cast<size_t>(v)].desc);
  for (int v : subgraph.outputs) executable->outputs.push_back(subgraph.values[static_cast<size_t>(v)].desc);
  return Compiled{std::move(executable), {}};
}

}  // namespace

Result<Compiled> compile_uncached(const Partition& partition, const Given& given, const CompileOptions& options) {
  if (!partition.supported)
    return fail(Code::invalid_arguments, str("partition ", partition.id, " is not supported: ", partition.reason));
  const ThreadScope scope(options.threads);
  Target target{.isa = machine_isa(),
                .threads = thread_count(),
                .fpmath = partition.fpmath,
                .keeps_packs = options.keeps_constants,
                .deterministic = options.deterministic};
  auto compiled = compile_for(target, partition, given);
  if (compiled.status().code() != Code::runtime_error) return compiled;
  // A system may refuse memory for machine code (SELinux, seccomp, systemd's MemoryDenyWriteExecute). What is lowered
  // and fused depends on the kernels there are, so everything is compiled anew.
  warn_once(Warning::no_code, compiled.status().text() + "; the interpreter is used, which is slow");
  target.isa = Isa::any;
  target.generates_code = false;
  return compile_for(target, partition, given);
}

}  // namespace partita
