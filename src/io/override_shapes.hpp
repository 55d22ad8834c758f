// SPDX-License-Identifier: Apache-2.0
// Shapes after an override: which inputs carry the batch, and inference through the whole graph.
#pragma once

#include <set>
#include <vector>

#include "partita/op.hpp"
#include "partita/status.hpp"

namespace partita {

/// Sets dim 0 of every input that carries the batch, and of the shape attributes that repeat it. False where no input
/// carries one.
Result<bool> set_batch(std::vector<op>& ops, int64_t batch);

/// Infers the shapes of all results anew, resizes quantization scales to them, and lays results out like the first
/// input of their operator where something changed. `before`: the operators as they were. `fixed`: results whose shape
/// was given and is only checked.
Status infer_again(std::vector<op>& ops, const std::vector<op>& before, const std::set<uint64_t>& fixed);

}  // namespace partita
