// SPDX-License-Identifier: Apache-2.0
// Views of a Problem's tensors in oneDNN's axis order.
#include "kernels/onednn/view.hpp"

#include <algorithm>

#include "src/base/axes.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

int64_t entry(const Dims& list, int i, int64_t absent) { return i < list.size() ? list[i] : absent; }

struct Axis {
  int64_t wide, narrow, kernel, stride, dilation, begin, end;
};

int64_t end_pad(const Axis& axis) {
  const int64_t extent = (axis.kernel - 1) * axis.dilation + 1;
  const int64_t room = axis.wide - extent + axis.begin + axis.end;
  if (room >= 0 && room / axis.stride + 1 == axis.narrow) return axis.end;
  return (axis.narrow - 1) * axis.stride + extent - axis.wide - axis.begin;
}

/// A single window has no stride, nor a single tap a dilation. oneDNN 3.7 looks at them nevertheless, and writes out of
/// bounds for long ones.
int64_t least_stride(const Axis& axis) {
  if (axis.narrow != 1) return axis.stride;
  const int64_t room = axis.wide - (axis.kernel - 1) * axis.dilation - 1 + axis.begin + end_pad(axis);
  return std::min(axis.stride, room + 1);
}

bool each_window_has_a_cell(const Axis& axis) {
  for (int64_t window = 0; window < axis.narrow; ++window) {
    bool found = false;
    for (int64_t k = 0; k < axis.kernel && !found; ++k) {
      const int64_t at = window * axis.stride - axis.begin + k * axis.dilation;
      found = at >= 0 && at < axis.wide;
    }
    if (!found) return false;
  }
  return true;
}

bool each_tap_has_a_cell(const Axis& axis) {
  for (int64_t k = 0; k < axis.kernel; ++k) {
    bool found = false;
    for (int64_t window = 0; window < axis.narrow && !found; ++window) {
      const int64_t at = window * axis.stride - axis.begin + k * axis.dilation;
      found = at >= 0 && at < axis.wide;
    }
    if (!found) return false;
  }
  return true;
}

bool each_cell_has_a_tap(const Axis& axis) {
  for (int64_t cell = 0; cell < axis.wide; ++cell) {
    bool found = false;
    for (int64_t k = 0; k < axis.kernel && !found; ++k) {
      const int64_t at = cell + axis.begin - k * axis.dilation;
      found = at >= 0 && at % axis.stride == 0 && at / axis.stride < axis.narrow;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

dnnl::memory::data_type type_of(Dtype dtype) {
  using type = dnnl::memory::data_type;
  switch (dtype) {
    case Dtype::f32: return type::f32;
    case Dtype::bf16: return type::bf16;
    case Dtype::f16: return type::f16;
    case Dtype::s32: return type::s32;
    case Dtype::s8: return type::s8;
    case Dtype::u8: return type::u8;
    default: return type::undef;
  }
}

dnnl::memory::dims dims_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

dnnl::memory::desc desc_of(const TensorDesc& tensor) {
  return {dims_of(tensor.dims), type_of(tensor.dtype), dims_of(tensor.strides)};
}

dnnl::memory::desc any_layout(const dnnl::memory::desc& desc) {
  return {desc.get_dims(), desc.get_data_type(), dnnl::memory::format_tag::any};
}

size_t offset_bytes(const TensorDesc& tensor) { return bytes_for(tensor.dtype, tensor.offset); }

TensorDesc channel_first(const TensorDesc& tensor, const Attrs& attrs) {
  const int rank = tensor.dims.size();
  return channels_last(attrs) && rank > 2 ? with_axis_moved(tensor, rank - 1, 1) : tensor;
}

TensorDesc weights_oix(const TensorDesc& weights, const Attrs& attrs) {
  TensorDesc view = weights;
  if (filter_axes(attrs, view.dims.size()).spatial == 0) {
    const int last = view.dims.size() - 1;
    view = with_axis_moved(with_axis_moved(std::move(view), last, 0), last, 1);
  }
  const int64_t groups = attrs.i64_or(Attr::groups, 1);
  if (groups > 1) {
    view.dims[0] /= groups;
    view.dims.insert(0, groups);
    view.strides.insert(0, view.dims[1] * view.strides[0]);
  }
  return view;
}

TensorDesc with_unit_axis(TensorDesc tensor, int at) {
  const int64_t stride = at < tensor.dims.size() ? tensor.dims[at] * tensor.strides[at] : 1;
  tensor.dims.insert(at, 1);
  tensor.strides.insert(at, stride);
  return tensor;
}

TensorDesc dense(TensorDesc tensor) {
  int64_t stride = 1;
  for (int axis = tensor.dims.size() - 1; axis >= 0; --axis) {
    tensor.strides[axis] = stride;
    stride *= std::max<int64_t>(tensor.dims[axis], 1);
  }
  tensor.offset = 0;
  return tensor;
}

const char* refuse_mixed_orders(const Problem& problem) {
  const TensorDesc& model = problem.in[0];
  const Dims order = axes_in_memory_order(model.strides);
  const auto fits = [&](const TensorDesc& tensor) {
    return tensor.dims.size() != model.dims.size() || axes_in_memory_order(tensor.strides) == order;
  };
  const bool all_fit = std::all_of(problem.in.begin(), problem.in.end(), fits) &&
                       std::all_of(problem.out.begin(), problem.out.end(), fits);
  return all_fit ? nullptr : "the axes of the tensors lie in different order in memory";
}

TensorDesc compact_like(const TensorDesc& model, TensorDesc tensor) {
  const Dims order = axes_in_memory_order(model.strides);
  int64_t stride = 1;
  for (int place = order.size() - 1; place >= 0; --place) {
    const auto axis = static_cast<int>(order[place]);
    tensor.strides[axis] = stride;
    stride *= std::max<int64_t>(tensor.dims[axis], 1);
  }
  tensor.offset = 0;
  return tensor;
}

TensorDesc compact(TensorDesc tensor) {
  const Dims before = tensor.strides;
  const TensorDesc model = tensor;
  tensor = compact_like(model, std::move(tensor));
  if (tensor.strides == before) return tensor;
  // the user's strides of axes of size 1 mean nothing, but oneDNN looks at them
  const int last = tensor.dims.size() - 1;
  for (int axis = last; axis >= 0; --axis) {
    if (tensor.dims[axis] != 1) continue;
    tensor.strides[axis] = axis == last ? 1 : tensor.dims[axis + 1] * tensor.strides[axis + 1];
  }
  return tensor;
}

Windows windows_of(const Attrs& attrs, const Dims& wide, const Dims& narrow, const Dims& kernel) {
  const Dims strides = attrs.dims(Attr::strides), begin = attrs.dims(Attr::pads_begin);
  const Dims end = attrs.dims(Attr::pads_end), dilations = attrs.dims(Attr::dilations);
  Windows windows;
  for (int i = 0; i < kernel.size(); ++i) {
    const Axis axis{.wide = wide[i + 2],
                    .narrow = narrow[i + 2],
                    .kernel = kernel[i],
                    .stride = entry(strides, i, 1),
                    .dilation = entry(dilations, i, 1),
                    .begin = entry(begin, i, 0),
                    .end = entry(end, i, 0)};
    windows.strides.push_back(least_stride(axis));
    windows.dilations.push_back(axis.kernel == 1 ? 0 : axis.dilation - 1);
    windows.begin.push_back(axis.begin);
    windows.end.push_back(end_pad(axis));
    windows.each_has_a_cell &= each_window_has_a_cell(axis);
    windows.each_tap_has_a_cell &= each_tap_has_a_cell(axis);
    windows.each_cell_has_a_tap &= each_cell_has_a_tap(axis);
    windows.steps_stay_inside &= axis.narrow * axis.stride <= axis.wide + axis.begin;
  }
  return windows;
}

}  // namespace partita::onednn
