// SPDX-License-Identifier: Apache-2.0
// One operator as one primitive of oneDNN, on tensors as they lie.
#pragma once

#include <optional>

#include "kernels/kernel.hpp"

namespace partita::bench {

/// Absent where oneDNN has no primitive for the operator, its types or layouts, or plain loops only. `problem` holds
/// the operator's ports in order, its step may be StepKind::loop.
std::optional<Run> one_primitive(const Problem& problem, const Target& target);

/// The input that the primitive may write its result over; -1: none.
int in_place_port(const Problem& problem);

}  // namespace partita::bench
