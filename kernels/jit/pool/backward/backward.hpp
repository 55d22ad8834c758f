// SPDX-License-Identifier: Apache-2.0
// Generated pooling gradients: average and maximum, one to three spatial axes, both data formats, with expressions
// around them.
#pragma once

#include <optional>

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_pool_backward(const Problem& problem, const Target& target);
Result<Run> make_pool_backward(const Problem& problem, const Target& target);
/// Whether an average's gradient is picked (pool/picked.hpp) unless it is a repeated one. Channels first, sums of
/// neighbours are faster where they are shared, but not in rows of a few cells; elements of 16 bits take so long to be
/// converted that only large results gain.
bool is_picked(const Problem& problem, const Target& target);
/// Whether rows of a maximum's gradient, channels first, are so narrow that several planes fill vectors together, and
/// may (pool/backward/plane_period_side_by_side.cpp).
bool is_side_by_side(const Problem& problem, const Target& target);
/// The channel-last problem of a group of planes, where a channel-first one is solved by turning its planes.
std::optional<Problem> turned_group(const Problem& problem, const Target& target);
/// Whether a gradient of an adaptive average, a StepKind::resample, can be made here: along x there must not be more
/// windows than cells.
bool fits_adaptive_average(const Problem& problem, const Target& target);

}  // namespace partita::jit
