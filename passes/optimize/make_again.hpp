// SPDX-License-Identifier: Apache-2.0
// Values that cost less to make twice than to write and read.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// A gradient of poolings that folds what it stores for one later loop (batch normalisation's gradient needs its sums
/// before its first result) is split: into one that folds, and one right before that loop that stores, for fuse_loops
/// to join with it. Only where windows are made quickly. Returns whether there was any.
bool make_again(Program& program);

}  // namespace partita
