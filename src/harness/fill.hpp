// SPDX-License-Identifier: Apache-2.0
// Input data for graph runs: repeatable numbers that suit the operators which read them.
#pragma once

#include "src/harness/storage.hpp"
#include "src/ir/finalize.hpp"

namespace partita {

/// Fills the storage of graph input `value`. Positive where a reader takes logarithms, roots or divides; content that
/// fits the given shapes for shape inputs; small integers for integer types.
Status fill_input(const FinalGraph& graph, int value, uint64_t seed, Storage& storage);

}  // namespace partita
