// SPDX-License-Identifier: Apache-2.0
// Program: steps in order over numbered buffers; what a partition is lowered to.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "src/ir/subgraph.hpp"

namespace partita {

/// Memory that steps read and write.
struct Buffer {
  enum class Role : uint8_t { input, output, temporary, constant };
  Role role = Role::temporary;
  uint64_t tensor = 0;             ///< id of the logical tensor (input, output)
  logical_tensor desc;             ///< of the whole tensor
  std::vector<std::byte> content;  ///< constant: the data
  size_t offset = 0;               ///< temporary: place in the arena
  bool kept = false;               ///< temporary made of constants alone
  size_t kept_offset = 0;          ///< its place in the memory that the constant cache keeps
  size_t whole_bytes = 0;          ///< output of a tile: of the tensor that it is a piece of
};

/// One kernel call. in[k] / out[k] are the buffers of problem.in[k] / problem.out[k]; kNoBuffer where nothing is read.
struct Step {
  static constexpr int kNoBuffer = -1;
  Problem problem;
  std::vector<int> in, out;
  std::vector<std::string> ops;  ///< "ReLU 7": the operators it computes
  std::string note;              ///< more about it, for a person
  Picked picked;
  Run run;
  std::vector<std::pair<size_t, size_t>> inplace;  ///< tiles: operand and output of which each tile may make one piece
  bool constant = false;                           ///< makes kept buffers: not run where the constant cache has them
  std::vector<size_t> packs_at;  ///< places of run.packs in the memory of the constant cache; kNotKept: it has none

  static constexpr size_t kNotKept = static_cast<size_t>(-1);
  bool reads(int buffer) const;
  bool writes(int buffer) const;
};

struct Program {
  /// So many addresses an execution keeps on its stack; more of them lie in the arena.
  static constexpr size_t kPointersOnStack = 256;

  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;  ///< buffers of the ports
  /// Temporaries, behind them the scratch of the hungriest step, behind it addresses that do not fit the stack.
  size_t arena_bytes = 0;
  size_t scratch_offset = 0, pointers_offset = 0;
  size_t addresses = 0;  ///< how many an execution needs: of the buffers, and of the operands of one step or the inputs
  size_t kept_bytes = 0;                               ///< what the constant cache keeps for one set of constant inputs
  std::vector<std::pair<uint64_t, uint64_t>> inplace;  ///< tensor ids (input, output) that may share memory
};

/// What a step does, for a person: operators, then the expressions.
std::string text_of(const Step& step);

/// Operators to steps; element-wise work becomes loops, and so do reductions where the target gets generated code.
Result<Program> lower(const Subgraph& graph, const Target& target);
/// Whether a skeleton step (pooling, softmax, ..) that became `joined` with a loop shall replace it and the loop.
using JoinRule = std::function<bool(const Problem& joined, const Problem& plain)>;
/// Joins loops with the loops they read from, and with the skeleton steps they stand in front of or behind, so that
/// data is walked once.
void fuse_loops(Program& program, const JoinRule& shall_join);
/// The same where kernels of the target take the joined step; never at the price of a slow kernel.
void fuse_loops(Program& program, const Target& target);
/// The kernel that the environment demands for this kind of step; empty where it names none of them.
std::string_view forced_kernel(StepKind step);
/// Chooses a kernel for every step and makes it.
Status select_kernels(Program& program, const Target& target);
/// Marks the inputs of steps that have the same content in every execution.
void mark_constants(Program& program);
/// Places temporaries in one arena by lifetime and finds the in-place pairs.
void plan_memory(Program& program);

/// Points the addresses of temporaries, constants and kept buffers into their memory; those of ports are the caller's.
void place_buffers(const Program& program, void** pointers, std::byte* arena, std::byte* kept);
/// Runs the steps over `pointers` of the buffers, behind which there is room for the operands of one step
/// (Program::addresses in all). `kept`: memory of kept_bytes that make_kept has filled, or null.
Status run_steps(const Program& program, void** pointers, std::byte* arena, const std::byte* kept);
/// Fills `kept` from the constants alone.
Status make_kept(const Program& program, void** pointers, std::byte* arena, std::byte* kept);

}  // namespace partita
