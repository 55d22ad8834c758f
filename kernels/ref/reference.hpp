// SPDX-License-Identifier: Apache-2.0
// References: what each operator means, as plain loops with double accumulation, for every layout, stride and type.
// They are the oracle of the tests and the last row of the tables; they share no code with the other kernels.
#pragma once

#include "kernels/kernel.hpp"

namespace partita {

/// Computes all outputs of `problem` (one operator, not fused) from its inputs.
using Reference = Status (*)(const Problem& problem, const RunArgs& args);

/// The reference of an operator kind; null for those that compute nothing (End, Wildcard).
Reference reference_of(OpKind kind);

}  // namespace partita
