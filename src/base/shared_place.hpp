// SPDX-License-Identifier: Apache-2.0
// Strides with which different elements of a tensor have one address.
#pragma once

#include <optional>

#include "partita/types.hpp"

namespace partita {

/// Coordinates of two elements at one place.
struct SharedPlace {
  Dims first, second;
};

/// Two different elements that these strides put in one place; absent where there are none. Dims and strides are known.
/// Gives up, as if there were none, where axes lie between each other in too many ways to try.
std::optional<SharedPlace> shared_place(const Dims& dims, const Dims& strides);

}  // namespace partita
