// SPDX-License-Identifier: Apache-2.0
// tile: steps whose large intermediate values are independent along some axes become one step that runs a small program
// for each tile of these axes.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Replaces such runs of steps (attention, forward and backward; gated MLPs; batch normalisation in training, channels
/// first) where it saves memory traffic. Comes after lowering and before the fusing of loops, which each tile's program
/// undergoes on its own. Tiles do not depend on the number of threads, so neither do results.
Status tile(Program& program, const Target& target);

}  // namespace partita
