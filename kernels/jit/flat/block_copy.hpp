// SPDX-License-Identifier: Apache-2.0
// Copies in blocks (block_plan.hpp) by generated code.
#pragma once

#include <optional>

#include "kernels/jit/flat/block_plan.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// The plan of a copy that is expected to be fastest in blocks: whose runs are short on one side or on both, and not
/// better exchanged in tiles.
std::optional<BlockPlan> block_copy_plan(const Problem& problem, const Target& target);
Result<Run> make_block_copy(const Problem& problem, const Target& target, BlockPlan plan);

}  // namespace partita::jit
