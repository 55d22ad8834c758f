// SPDX-License-Identifier: Apache-2.0
// Sources repeated by whole factors: nearest neighbours upwards, which is what an average's gradient does.
#pragma once

#include <optional>

#include "kernels/kernel.hpp"

namespace partita::jit {

/// The interpolation as the gradient of an average pooling whose windows are each source's results, divided by one;
/// nothing where it is none, or generated code does not make that gradient.
std::optional<Problem> as_pool_backward(const Problem& resample, const Target& target);

}  // namespace partita::jit
