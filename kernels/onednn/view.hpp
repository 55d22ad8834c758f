// SPDX-License-Identifier: Apache-2.0
// How a tensor of a Problem looks to oneDNN: the same memory with its axes in oneDNN's canonical order.
#pragma once

#include <dnnl.hpp>

#include "kernels/problem.hpp"

namespace partita::onednn {

/// undef where oneDNN has no such type.
dnnl::memory::data_type type_of(Dtype dtype);
/// The strided description; throws dnnl::error where oneDNN cannot describe the tensor.
dnnl::memory::desc desc_of(const TensorDesc& tensor);
/// Same dims and type, layout left to the primitive.
dnnl::memory::desc any_layout(const dnnl::memory::desc& desc);
dnnl::memory::dims dims_of(const Dims& dims);
size_t offset_bytes(const TensorDesc& tensor);

/// N, C, then the spatial axes, whatever the attribute `data_format` says of the user's order.
TensorDesc channel_first(const TensorDesc& tensor, const Attrs& attrs);
/// O, I, X (groups 1) or G, O/G, I, X, for `weights_format` XIO, OIX and their ConvTranspose twins XOI, IOX, which name
/// the same axes from the other side.
TensorDesc weights_oix(const TensorDesc& weights, const Attrs& attrs);
/// Without gaps, the axes in memory in the order of `model`'s.
TensorDesc compact_like(const TensorDesc& model, TensorDesc tensor);
/// Adds an axis of size 1 before axis `at`.
TensorDesc with_unit_axis(TensorDesc tensor, int at);
/// Drops order and gaps of memory: row-major strides, offset 0.
TensorDesc dense(TensorDesc tensor);
/// Drops gaps and offset, keeps the order of the axes in memory.
TensorDesc compact(TensorDesc tensor);
/// Declines a problem whose tensors of the rank of the first input lie in different order in memory: many of oneDNN's
/// kernels take one order for granted without asking.
const char* refuse_mixed_orders(const Problem& problem);

/// Sliding windows of a convolution or a pooling, per spatial axis. `dilations` are 0-based as oneDNN counts them;
/// `end` is what makes oneDNN's size formula give the known output size, also where the operator rounded up.
struct Windows {
  dnnl::memory::dims strides, dilations, begin, end;
  bool each_has_a_cell = true;  ///< no window lies completely in the padding
  bool each_tap_has_a_cell = true;  ///< no tap of the kernel meets padding only
  bool each_cell_has_a_tap = true;  ///< no cell of the wide tensor lies between windows or behind them
  bool steps_stay_inside = true;  ///< as many strides as there are windows do not leave the wide tensor
};

/// `wide` is the tensor the windows move over, `narrow` has one entry a window; both channel first.
Windows windows_of(const Attrs& attrs, const Dims& wide, const Dims& narrow, const Dims& kernel);

}  // namespace partita::onednn
