// SPDX-License-Identifier: Apache-2.0
// What the normalisations share: their per-channel vectors, which oneDNN wants as dense f32.
#pragma once

#include <span>

#include "kernels/onednn/primitive_run.hpp"

namespace partita::onednn {

inline constexpr const char* kVectorsNotDense = "statistics, gamma or beta are not dense f32";

bool all_dense_floats(std::span<const TensorDesc> tensors);
/// Scratch memory that holds `count` times 1 when the next primitive runs.
Place ones(PrimitiveRun& run, int64_t count);

}  // namespace partita::onednn
