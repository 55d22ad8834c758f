// SPDX-License-Identifier: Apache-2.0
// Joining of numbers that were folded apart. Each is joined by itself, so that results do not depend on the processor.
#pragma once

#include <cstdint>

#include "kernels/expr.hpp"

namespace partita {

/// to[i] = folded(how, to[i], from[i]) for n numbers.
void fold_numbers(Fold how, double* to, const float* from, int64_t n);
void fold_numbers(Fold how, double* to, const double* from, int64_t n);

/// to[i] = from[i] for n numbers.
void round_numbers(float* to, const double* from, int64_t n);

}  // namespace partita
