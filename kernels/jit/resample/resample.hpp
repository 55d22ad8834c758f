// SPDX-License-Identifier: Apache-2.0
// Interpolation (nearest and linear) and adaptive average pooling, and their gradients, by generated code: one to three
// spatial axes, any scale, both layouts, with expressions around them.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

/// For StepKind::resample and StepKind::resample_backward.
const char* refuse_resample(const Problem& problem, const Target& target);
Result<Run> make_resample(const Problem& problem, const Target& target);

}  // namespace partita::jit
