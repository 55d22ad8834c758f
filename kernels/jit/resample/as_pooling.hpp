// SPDX-License-Identifier: Apache-2.0
// Interpolations that poolings do: sources repeated by whole factors (nearest neighbours upwards), which is an
// average's gradient, and means of neighbours (linear to half the size).
#pragma once

#include <optional>

#include "kernels/kernel.hpp"

namespace partita::jit {

/// The interpolation as the gradient of an average pooling whose windows are each source's results, divided by one, or
/// as an average pooling whose windows follow each other; nothing where it is neither, or generated code does not make
/// that.
std::optional<Problem> as_pooling(const Problem& resample, const Target& target);

}  // namespace partita::jit
