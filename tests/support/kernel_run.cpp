// SPDX-License-Identifier: Apache-2.0
// Running of single kernel rows.
#include "tests/support/kernel_run.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/ref/reference.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita::test {

std::vector<Isa> generated_isas() {
  std::vector<Isa> list;
#if PARTITA_JIT
  for (Isa isa : {Isa::avx2, Isa::avx512})
    if (machine_isa() >= isa) list.push_back(isa);
#endif
  return list;
}

const Kernel* generated_row(StepKind step, Isa isa) {
  for (const Kernel& row : kernels_for(step))
    if (row.isa == isa) return &row;
  ADD_FAILURE() << "no generated row for " << name_of(step) << " with " << name_of(isa);
  return nullptr;
}

std::vector<Buffer> run_kernel(const Kernel& row, const Problem& problem, const std::vector<Buffer>& in, int threads) {
  return run_kernel(row, problem, in, Target{.isa = row.isa, .threads = threads});
}

std::vector<Buffer> run_kernel(const Kernel& row, const Problem& problem, const std::vector<Buffer>& in,
                               const Target& target) {
  std::vector<Buffer> out;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const Buffer& b : in) sources.push_back(b.data());
  for (const TensorDesc& desc : problem.out) out.push_back(nan_buffer(desc));
  for (Buffer& b : out) targets.push_back(b.data());
  const ThreadScope scope(target.threads);
  const char* reason = row.refuse(problem, target);
  EXPECT_EQ(reason, nullptr) << row.name << ": " << (reason ? reason : "");
  if (reason) return out;
  const Result<Run> run = row.make(problem, target);
  EXPECT_TRUE(run.ok()) << run.status().text();
  if (!run.ok()) return out;
  GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0xff);
  const Status status = run->call({sources, targets, scratch.data()});
  EXPECT_TRUE(status.ok()) << status.text();
  for (const Buffer& b : out) EXPECT_EQ(damage(b), "") << row.name;
  return out;
}

std::vector<Buffer> reference_results(const Problem& problem, const std::vector<Buffer>& in) {
  const auto accept = [](const Problem&, const Target&) -> const char* { return nullptr; };
  const auto make = [](const Problem& p, const Target&) -> Result<Run> {
    return Run{.call = [p](const RunArgs& args) { return reference_of(p.op)(p, args); }, .scratch_bytes = 0};
  };
  return run_kernel({"reference", problem.step, Isa::any, accept, make}, problem, in, 1);
}

std::string byte_difference(const std::vector<Buffer>& got, const std::vector<Buffer>& expected) {
  for (size_t k = 0; k < expected.size(); ++k)
    for (size_t i = 0; i < expected[k].bytes.size(); ++i)
      if (got[k].bytes.data()[i] != expected[k].bytes.data()[i])
        return str("output ", k, " differs first at byte ", i, " of ", expected[k].bytes.size());
  return {};
}

}  // namespace partita::test
