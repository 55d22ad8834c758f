// SPDX-License-Identifier: Apache-2.0
// Program: steps in order over numbered buffers; what a partition is lowered to.
#pragma once

#include <cstddef>
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

}  // namespace partita
