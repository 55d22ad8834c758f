// SPDX-License-Identifier: Apache-2.0
// Parts of a tensor that follow each other, as a concatenation makes them.
#pragma once

#include <optional>

#include "kernels/problem.hpp"

namespace partita {

/// The axis along which `next` begins where `before` ends, both views of one tensor with the same extents along the
/// others; absent where there is none.
std::optional<int> axis_between(const TensorDesc& before, const TensorDesc& next);

}  // namespace partita
