// SPDX-License-Identifier: Apache-2.0
// Compilation and comparison of whole graphs for tests.
#include "tests/support/compiled_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {

CompiledGraph compiled_graph(std::string_view text, int threads, uint64_t seed, const std::vector<uint64_t>& constants,
                             const std::map<uint64_t, Dims>& strides) {
  const auto lay = [&](logical_tensor& t) {
    if (const auto own = strides.find(t.id); own != strides.end())
      t = logical_tensor(t.id, t.dtype, Dims(t.dims), own->second);
  };
  std::vector<op> ops = ops_of(text);
  for (op& o : ops)
    for (logical_tensor& t : o.inputs) {
      lay(t);
      if (std::count(constants.begin(), constants.end(), t.id)) t.property = Property::constant;
    }
  graph g;
  for (const op& o : ops) {
    const Status status = g.add_op(o);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  const Status status = g.finalize();
  EXPECT_TRUE(status.ok()) << status.text();
  CompiledGraph made{one_partition(g), {}, input_data(g, seed), nullptr};
  made.ports = ports_of(made.partition);
  std::ranges::for_each(made.ports.outputs, lay);
  auto compiled = compile_uncached(made.partition, made.ports.given(), {.threads = threads});
  EXPECT_TRUE(compiled.ok()) << compiled.status().text();
  if (compiled.ok()) made.executable = compiled->executable;
  return made;
}

Tensors CompiledGraph::run(int threads, bool scratchpad) const {
  std::vector<tensor> in, out;
  Tensors made;
  for (const logical_tensor& t : executable->inputs) in.push_back(inputs.at(t.id).as_tensor());
  for (const logical_tensor& t : executable->outputs) {
    Storage& storage = made[t.id] = Storage(t);
    out.push_back(storage.as_tensor());
  }
  const engine on;
  const size_t bytes = executable->program.arena_bytes;
  void* memory = scratchpad && bytes > 0 ? on.memory().allocate(bytes, 64) : nullptr;
  const Status status = partita::run(*executable, stream(on, threads), in, out, memory);
  if (memory) on.memory().deallocate(memory);
  EXPECT_TRUE(status.ok()) << status.text();
  return made;
}

std::string CompiledGraph::difference(const Tensors& results) const {
  const auto expected = run_reference(partition, ports.given(), inputs);
  if (!expected.ok()) return expected.status().text();
  for (const auto& [id, storage] : *expected) {
    const Difference found = compare(results.at(id), storage, tolerance_of(partition));
    if (found.wrong > 0) return str("tensor ", id, ": ", found.first);
  }
  return {};
}

std::string CompiledGraph::steps() const {
  std::string text;
  for (const Step& step : executable->program.steps) text += str(step.picked.kernel->name, ": ", text_of(step), "\n");
  return text;
}

}  // namespace partita::test
