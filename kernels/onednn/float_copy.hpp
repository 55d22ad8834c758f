// SPDX-License-Identifier: Apache-2.0
// Copies between tensors of any floating-point type and layout and f32 tensors of another layout.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::onednn {

/// A loop that copies in[0], which lies as `from` says, to out[0], which lies as `to` says; both have the same dims.
Problem copy_loop(const TensorDesc& from, const TensorDesc& to);
/// The best kernel's run of it.
Result<Run> float_copy(const TensorDesc& from, const TensorDesc& to, const Target& target);

}  // namespace partita::onednn
