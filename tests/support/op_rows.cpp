// SPDX-License-Identifier: Apache-2.0
// Single operators through all rows of their tables; entry: run_every_row().
#include "tests/support/op_rows.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "partita/graph.hpp"
#include "passes/lower/lower.hpp"
#include "passes/plan.hpp"
#include "src/base/cpu.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

/// Steps of the row's kind by that row, others by the last row of their table. Absent where the row declines.
std::optional<Tensors> run_row(Program program, const Kernel& row, const Tensors& inputs) {
  const Target target{.isa = machine_isa()};
  for (Step& step : program.steps) {
    const bool own = step.problem.step == row.step;
    step.picked = {own ? &row : &kernels_for(step.problem.step).back(), {}};
    if (row.isa > target.isa || step.picked.kernel->refuse(step.problem, target)) return std::nullopt;
    Result<Run> run = step.picked.kernel->make(step.problem, target);
    EXPECT_TRUE(run.ok()) << row.name << ": " << run.status().text();
    if (!run.ok()) return std::nullopt;
    step.run = std::move(run).value();
  }
  plan_memory(program);
  return executed(program, inputs);
}

/// Through the whole chain, with the row that is best.
Tensors run_compiled(const Partition& single, const Ports& ports, const Tensors& inputs) {
  const auto compiled = compile_uncached(single, ports.given(), {.threads = 1});
  EXPECT_TRUE(compiled.ok()) << compiled.status().text();
  return compiled.ok() ? executed(compiled->executable->program, inputs) : Tensors();
}

}  // namespace

Tensors input_data(const op& o, uint64_t seed) {
  graph g;
  Status status = g.add_op(o);
  if (status.ok()) status = g.finalize();
  EXPECT_TRUE(status.ok()) << status.text();
  return status.ok() ? input_data(g, seed) : Tensors();
}

OpRuns run_every_row(const Partition& single, const Tensors& inputs) {
  const ThreadScope one_thread(1);
  OpRuns runs;
  const Ports ports = ports_of(single);
  auto specialized = specialize(single, ports.given());
  if (!specialized.ok()) return {specialized.status().text(), {}};
  // Without generated code each operator is one step, which the rows of its table compute; "compiled" below has the
  // rest.
  const auto program = lower(specialized->graph, {.isa = Isa::any});
  if (!program.ok()) return {program.status().text(), {}};
  if (!program->steps.empty()) {
    for (const Kernel& row : kernels_for(op_def(single.ops[0].kind).step))
      if (auto made = run_row(*program, row, inputs)) runs.rows[row.name] = std::move(*made);
  }
  runs.rows["compiled"] = run_compiled(single, ports, inputs);
  auto reference = run_reference(single, ports.given(), inputs);
  EXPECT_TRUE(reference.ok()) << reference.status().text();
  if (reference.ok()) runs.rows["reference"] = std::move(reference).value();
  return runs;
}

}  // namespace partita::test
