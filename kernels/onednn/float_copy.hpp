// SPDX-License-Identifier: Apache-2.0
// Dense f32 copies of tensors of any floating-point type and layout.
#pragma once

#include "kernels/problem.hpp"

namespace partita::onednn {

/// The description of the copy: f32 without gaps, axes in the same order in memory; equal to `tensor` where that is
/// f32 without gaps and offset already.
TensorDesc float_copy_of(const TensorDesc& tensor);
size_t float_copy_bytes(const TensorDesc& copy);

void copy_to_floats(const TensorDesc& from, const void* data, float* to);
void copy_from_floats(const TensorDesc& to, const float* from, void* data);

}  // namespace partita::onednn
