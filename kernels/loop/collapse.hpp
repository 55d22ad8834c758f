// SPDX-License-Identifier: Apache-2.0
// Joins axes of a flat loop that every operand walks without a gap, so that the inner runs are long.
#pragma once

#include "kernels/problem.hpp"

namespace partita {

/// The same loop over fewer axes. Axes whose coordinate the expression reads stay as they are.
Problem collapsed(const Problem& loop);

}  // namespace partita
