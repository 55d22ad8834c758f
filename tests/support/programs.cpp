// SPDX-License-Identifier: Apache-2.0
// Lowering and execution of whole graphs for tests of the passes.
#include "tests/support/programs.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/loop/interpreter.hpp"
#include "passes/lower/lower.hpp"
#include "passes/optimize/fuse_loops.hpp"
#include "passes/plan.hpp"
#include "src/base/text.hpp"
#include "src/harness/fill.hpp"
#include "src/run/executable.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {
namespace {

constexpr Kernel kInterpreter = {"interpreter", StepKind::loop, Isa::any, refuse_interpreted, make_interpreted, true};
constexpr int kMostThreads = 8;  // scratch memory is sized for them

std::vector<std::string> texts_of(const Program& program) {
  std::vector<std::string> texts;
  for (const Step& step : program.steps) texts.push_back(text_of(step));
  return texts;
}

Program lowered(std::string_view text, const std::vector<uint64_t>& kept) {
  const Partition p = one_partition(final_graph_of(text), kept);
  return lowered(p, ports_of(p));
}

std::vector<std::string> without_expressions(std::vector<std::string> texts) {
  for (std::string& text : texts) text.resize(std::min(text.size(), text.find(" |")));
  return texts;
}

}  // namespace

bool interpreter_joins(const Problem& joined, const Problem&) { return refuse_interpreted(joined, {}) == nullptr; }

Partition one_partition(const graph& g, const std::vector<uint64_t>& kept) {
  Partition p = whole_partition(*g.form(), {});
  for (const Value& value : g.form()->values)
    for (uint64_t id : kept)
      if (value.desc.id == id && !value.uses.empty()) p.outputs.push_back(value.desc);
  return p;
}

Ports ports_of(const Partition& partition) {
  Ports ports{partition.inputs, partition.outputs};
  for (auto* side : {&ports.inputs, &ports.outputs})
    for (logical_tensor& t : *side)
      if (t.layout == Layout::undef) t.layout = Layout::any;
  return ports;
}

Program lowered(const Partition& partition, const Ports& ports) {
  const auto specialized = specialize(partition, ports.given());
  EXPECT_TRUE(specialized.ok()) << specialized.status().text();
  if (!specialized.ok()) return {};
  auto program = lower(specialized->graph, {.isa = machine_isa()});
  EXPECT_TRUE(program.ok()) << program.status().text();
  return program.ok() ? std::move(program).value() : Program{};
}

std::vector<std::string> fused_steps(std::string_view text, const std::vector<uint64_t>& kept) {
  Program program = lowered(text, kept);
  fuse_loops(program, interpreter_joins);
  return texts_of(program);
}

std::vector<std::string> fused_groups(std::string_view text, const std::vector<uint64_t>& kept) {
  return without_expressions(fused_steps(text, kept));
}

std::vector<std::string> fused_steps(std::string_view text, const Target& target, const std::vector<uint64_t>& kept) {
  Program program = lowered(text, kept);
  fuse_loops(program, target);
  return texts_of(program);
}

std::vector<std::string> fused_groups(std::string_view text, const Target& target, const std::vector<uint64_t>& kept) {
  return without_expressions(fused_steps(text, target, kept));
}

Tensors input_data(const graph& g, uint64_t seed) {
  Tensors tensors;
  for (size_t v = 0; v < g.form()->values.size(); ++v) {
    const Value& value = g.form()->values[v];
    if (value.producer >= 0) continue;
    Storage& storage = tensors[value.desc.id] = Storage(value.desc);
    const Status status = fill_input(*g.form(), static_cast<int>(v), seed, storage);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  return tensors;
}

void make_kernels(Program& program) {
  const Target target{.threads = kMostThreads};
  for (Step& step : program.steps) {
    if (refuse_interpreted(step.problem, target) == nullptr) {
      step.picked = {&kInterpreter, {}};
    } else {
      auto picked = pick_kernel(step.problem, target);
      ASSERT_TRUE(picked.ok()) << picked.status().text();
      step.picked = std::move(picked).value();
    }
    auto run = step.picked.kernel->make(step.problem, target);
    ASSERT_TRUE(run.ok()) << run.status().text();
    step.run = std::move(run).value();
  }
  plan_memory(program);
}

Tensors executed(const Program& program, const Tensors& inputs, int threads) {
  EXPECT_LE(threads, kMostThreads);
  Executable executable;
  executable.program = program;
  executable.threads = threads;
  std::vector<tensor> in, out;
  Tensors made;
  for (int b : program.inputs) {
    executable.inputs.push_back(program.buffers[static_cast<size_t>(b)].desc);
    in.push_back(inputs.at(executable.inputs.back().id).as_tensor());
  }
  for (int b : program.outputs) {
    executable.outputs.push_back(program.buffers[static_cast<size_t>(b)].desc);
    Storage& storage = made[executable.outputs.back().id] = Storage(executable.outputs.back());
    out.push_back(storage.as_tensor());
  }
  const Status status = run(executable, stream(engine(), threads), in, out, nullptr);
  EXPECT_TRUE(status.ok()) << status.text();
  return made;
}

Tensors executed_in_place(const Program& program, const Tensors& inputs, int threads) {
  Executable e;
  e.program = program;
  std::vector<tensor> in, out;
  Tensors made, read;
  for (int b : program.inputs) {
    const logical_tensor& desc = e.inputs.emplace_back(program.buffers[static_cast<size_t>(b)].desc);
    Storage& copy = read[desc.id] = Storage(desc);
    std::memcpy(copy.data.get(), inputs.at(desc.id).data.get(), copy.bytes);
    in.push_back(copy.as_tensor());
  }
  for (int b : program.outputs) {
    const logical_tensor& desc = e.outputs.emplace_back(program.buffers[static_cast<size_t>(b)].desc);
    for (const auto& [from, to] : program.inplace)
      if (to == desc.id) {
        EXPECT_EQ(read.at(from).bytes, desc.size_bytes());
        made[desc.id] = std::move(read.at(from));
        made[desc.id].desc = desc;
      }
    if (!made.count(desc.id)) made[desc.id] = Storage(desc);
    out.push_back(made[desc.id].as_tensor());
  }
  const Status s = run(e, stream(engine(), threads), in, out, nullptr);
  EXPECT_TRUE(s.ok()) << s.text();
  return made;
}

std::string bit_difference(const Tensors& got, const Tensors& expected) {
  for (const auto& [id, storage] : expected) {
    const auto found = got.find(id);
    if (found == got.end()) return str("tensor ", id, " is missing");
    if (found->second.bytes != storage.bytes) return str("tensor ", id, " has ", found->second.bytes, " bytes");
    const auto *a = static_cast<const unsigned char*>(found->second.data.get()),
               *b = static_cast<const unsigned char*>(storage.data.get());
    for (size_t i = 0; i < storage.bytes; ++i)
      if (a[i] != b[i]) return str("tensor ", id, " (", storage.desc.text(), ") differs first at byte ", i);
  }
  return {};
}

StepCounts expect_fusion_keeps_bits(const graph& g, const std::vector<uint64_t>& kept, uint64_t seed) {
  const Partition p = one_partition(g, kept);
  Program plain = lowered(p, ports_of(p)), fused = plain;
  fuse_loops(fused, interpreter_joins);
  make_kernels(plain);
  make_kernels(fused);
  const Tensors inputs = input_data(g, seed);
  const Tensors expected = executed(plain, inputs), got = executed(fused, inputs, 2);
  std::string steps;
  for (const Step& step : fused.steps) steps += text_of(step) + "\n";
  EXPECT_EQ(bit_difference(got, expected), "") << steps;
  return {plain.steps.size(), fused.steps.size()};
}

}  // namespace partita::test
