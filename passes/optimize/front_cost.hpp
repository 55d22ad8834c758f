// SPDX-License-Identifier: Apache-2.0
// What an expression costs in front of a step that evaluates it more than once for each element.
#pragma once

#include "kernels/problem.hpp"

namespace partita {

/// Whether a loop of its own, whose result is stored and read again, takes less time than the step's front expression:
/// poolings whose windows overlap evaluate it for each window, resamplings for each result, group normalisation in each
/// of its three sweeps. Past the caches, expressions have the time that memory takes.
bool is_dear_in_front(const Problem& problem);

}  // namespace partita
