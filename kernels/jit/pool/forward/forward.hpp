// SPDX-License-Identifier: Apache-2.0
// Generated forward poolings in both data formats: average and maximum, one to three spatial axes, with expressions
// around them.
#pragma once

#include <optional>

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_pool_forward(const Problem& problem, const Target& target);
Result<Run> make_pool_forward(const Problem& problem, const Target& target);

/// One group of planes, channels last, where planes are turned unless a kernel for fewer taps fits; absent elsewhere.
std::optional<Problem> turned_forward_group(const Problem& problem, Isa isa);

}  // namespace partita::jit
