// SPDX-License-Identifier: Apache-2.0
// The limit on the size of tensors.
#pragma once

#include "partita/types.hpp"

namespace partita {

/// Whether a tensor lies in memory that a process can address: no dim or stride is negative, and neither the product of
/// the dims (one of 0 counted as 1) nor the distance to the last element reaches 2^47. Arithmetic on such shapes -
/// partial products, bytes, sums over the tensors of a program - stays within 64 bits. `strides` has the rank of
/// `dims`.
bool addressable(const Dims& dims, const Dims& strides);

}  // namespace partita
