// SPDX-License-Identifier: Apache-2.0
// Whole graphs as one lowered program, fused or not, run on repeatable data with the interpreter's kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "partita/graph.hpp"
#include "passes/partition.hpp"
#include "passes/program.hpp"
#include "src/harness/reference_run.hpp"

namespace partita::test {

/// All operators as one partition; values of `kept` become outputs beside those that nobody reads.
Partition one_partition(const graph& g, const std::vector<uint64_t>& kept = {});

/// Inputs and outputs to compile for: the ports, with layouts that were left open set to `any`.
struct Ports {
  std::vector<logical_tensor> inputs, outputs;
  Given given() const { return {inputs, outputs, {}}; }
};
Ports ports_of(const Partition& partition);

/// For fuse_loops: joins what the interpreter computes, whatever kernels the machine has.
bool interpreter_joins(const Problem& joined, const Problem& plain);
/// Lowered, without fusion; fails the test where it cannot be.
Program lowered(const Partition& partition, const Ports& ports);
/// The steps of the text's graph after fusion: "ReLU 1 + Exp 2 | each: %0 = load in0; ..".
std::vector<std::string> fused_steps(std::string_view text, const std::vector<uint64_t>& kept = {});
/// Only the operators of each step: "ReLU 1 + Exp 2".
std::vector<std::string> fused_groups(std::string_view text, const std::vector<uint64_t>& kept = {});

/// The same with the kernels of a target.
std::vector<std::string> fused_steps(std::string_view text, const Target& target,
                                     const std::vector<uint64_t>& kept = {});
std::vector<std::string> fused_groups(std::string_view text, const Target& target,
                                      const std::vector<uint64_t>& kept = {});

/// Repeatable data for every input of the graph.
Tensors input_data(const graph& g, uint64_t seed);
/// Loops and poolings through the interpreter, other steps through the first row that accepts; then planned.
void make_kernels(Program& program);
/// Runs a program that has kernels and a plan. Outputs start as 0xff bytes.
Tensors executed(const Program& program, const Tensors& inputs, int threads = 1);
/// The same with every in-place pair in one memory.
Tensors executed_in_place(const Program& program, const Tensors& inputs, int threads = 2);
/// Empty where all tensors hold the same bytes, gaps included.
std::string bit_difference(const Tensors& got, const Tensors& expected);

struct StepCounts {
  size_t plain = 0, fused = 0;
};
/// Runs the graph as one program through the interpreter, with and without fusion, on data of the seed; fails the test
/// where a bit differs. `kept` as for one_partition.
StepCounts expect_fusion_keeps_bits(const graph& g, const std::vector<uint64_t>& kept, uint64_t seed);

}  // namespace partita::test
