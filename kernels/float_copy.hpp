// SPDX-License-Identifier: Apache-2.0
// Copies between tensors of any floating-point type and layout and f32 tensors of another layout.
#pragma once

#include "kernels/kernel.hpp"

namespace partita {

/// The best kernel's run of copy_loop.
Result<Run> float_copy(const TensorDesc& from, const TensorDesc& to, const Target& target);

}  // namespace partita
