// SPDX-License-Identifier: Apache-2.0
// Copies between tensors of any floating-point type and layout and f32 tensors of another layout.
#pragma once

#include "kernels/problem.hpp"

namespace partita::onednn {

/// `to_desc` describes an f32 tensor without gaps.
void copy_to_floats(const TensorDesc& from_desc, const void* from, const TensorDesc& to_desc, float* to);
void copy_from_floats(const TensorDesc& from_desc, const float* from, const TensorDesc& to_desc, void* to);

}  // namespace partita::onednn
