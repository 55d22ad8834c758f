// SPDX-License-Identifier: Apache-2.0
// Quantization between numbers and integers (or f8), in f32 as kernels do it, so that rounding agrees to the last step.
#include <algorithm>
#include <cmath>

#include "kernels/ref/map.hpp"
#include "kernels/ref/references.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/scale_axes.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita::ref {
namespace {

struct Operands {
  View dst, src, scales, zps;  ///< of equal dims
};

double to_quantized(double x, double scale, double zero_point) {
  return static_cast<double>(std::nearbyint(static_cast<float>(x) / static_cast<float>(scale))) + zero_point;
}

double from_quantized(double q, double scale, double zero_point) {
  return static_cast<double>(static_cast<float>(q - zero_point) * static_cast<float>(scale));
}

void run(const Operands& o, bool forward) {
  if (!forward) return map(4, from_quantized, o.dst, o.src, o.scales, o.zps);
  if (is_integer(o.dst.dtype())) return map(4, to_quantized, o.dst, o.src, o.scales, o.zps);
  map(
      4,
      [](double x, double scale, double) {
        return static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
      },
      o.dst, o.src, o.scales, o.zps);
}

/// One parameter for the tensor, or one for each place along the axis.
View spread(const View& list, const Problem& problem, const Dims& dims) {
  const bool per_channel = problem.attrs.is(Attr::qtype, "per_channel");
  const int axis = per_channel ? normal_axis(problem.attrs.i64_or(Attr::axis, 1), dims.size()).value_or(0) : 0;
  return along_axis(list, dims, axis);
}

void split_axis(View& view, int axis, int64_t outer_stride, int64_t inner, int64_t inner_stride) {
  view.dims[axis] /= inner;
  view.strides[axis] = outer_stride;
  view.dims.insert(axis + 1, inner);
  view.strides.insert(axis + 1, inner_stride);
}

/// Splits each axis into groups, so that a parameter has stride 0 inside its group.
Status split_groups(Operands& o, const View& scales, const View& zps) {
  o.scales = scales;
  o.zps = zps;
  for (int axis = o.dst.rank(); axis-- > 0;) {
    const int64_t extent = o.dst.dims[axis], groups = scales.dims[axis];
    if (groups < 1 || extent % groups != 0 || zps.dims[axis] != groups) {
      return fail(Code::invalid_shape, str("axis ", axis, " has ", extent, " elements, which ", groups,
                                           " `scales` and ", zps.dims[axis], " `zps` do not divide into groups"));
    }
    if (groups == extent) continue;
    if (o.dst.rank() == kMaxRank) return fail(Code::unimplemented, "groups in a tensor of the highest rank");
    const int64_t inner = extent / groups;
    for (View* view : {&o.dst, &o.src})
      split_axis(*view, axis, view->strides[axis] * inner, inner, view->strides[axis]);
    for (View* view : {&o.scales, &o.zps}) {
      view->dims[axis] = extent;
      split_axis(*view, axis, view->strides[axis], inner, 0);
    }
  }
  return {};
}

/// Weights of a grouped ConvTranspose: one parameter for each place along `axis` in each group, groups along axis 0.
View in_groups(const View& list, const Dims& dims, int axis) {
  const int64_t entries = list.dims[0], in_group = dims[axis];
  View view = list;
  view.dims = Dims(dims.size(), 1);
  view.strides = Dims(dims.size(), 0);
  view.dims[0] = entries / in_group;
  view.strides[0] = in_group;
  view.dims[axis] = in_group;
  view.strides[axis] = 1;
  return view;
}

Status with_lists(const Problem& problem, Args args, bool forward) {
  Operands o{out_view(problem, args, 0), in_view(problem, args, 0), {}, {}};
  const Dims dims = o.dst.dims;
  const std::vector<float>& scales = problem.attrs.floats(Attr::scales);
  const auto n = static_cast<int64_t>(scales.size());
  std::vector<double> zps(scales.size(), 0);
  if (problem.attrs.has(Attr::zps)) {
    const std::vector<int64_t>& given = problem.attrs.ints(Attr::zps);
    if (!given.empty()) zps.assign(given.begin(), given.end());
  }
  const View scale_list({Dtype::f32, {n}, {1}, 0}, scales.data()), zp_list({Dtype::f64, {n}, {1}, 0}, zps.data());
  const bool per_channel = problem.attrs.is(Attr::qtype, "per_channel");
  const int axis = per_channel ? normal_axis(problem.attrs.i64_or(Attr::axis, 1), dims.size()).value_or(0) : 0;
  if (per_channel && axis > 0 && n > dims[axis]) {
    PT_TRY(split_groups(o, in_groups(scale_list, dims, axis), in_groups(zp_list, dims, axis)));
  } else {
    o.scales = spread(scale_list, problem, dims);
    o.zps = spread(zp_list, problem, dims);
  }
  run(o, forward);
  return {};
}

/// A tensor of scales or zero points as one of the source's rank; one element repeats everywhere.
Result<View> with_all_axes(View view, const ScaleAxes& axes) {
  const bool one = elements(view.dims) == 1;
  const auto strides = one ? Dims(axes.dims.size(), 0) : strides_of_scales(axes, view.dims, view.strides);
  if (!strides) return fail(Code::invalid_shape, str("[", text_of(view.dims), "] are not the dims of `scales`"));
  view.dims = axes.dims;
  view.strides = *strides;
  return view;
}

Status with_tensors(const Problem& problem, Args args, bool forward) {
  static constexpr double kZero = 0;
  Operands o{out_view(problem, args, 0), in_view(problem, args, 0), {}, {}};
  const ScaleAxes axes = scale_axes(problem.attrs, o.dst.dims);
  PT_ASSIGN(const View scales, with_all_axes(in_view(problem, args, 1), axes));
  PT_ASSIGN(
      const View zps,
      with_all_axes(problem.in.size() > 2 ? in_view(problem, args, 2) : View({Dtype::f64, {}, {}, 0}, &kZero), axes));
  if (std::ranges::count(axes.group, 1) == axes.group.size()) {
    o.scales = broadcast_to(scales, o.dst.dims);
    o.zps = broadcast_to(zps, o.dst.dims);
  } else {
    PT_TRY(split_groups(o, scales, zps));
  }
  run(o, forward);
  return {};
}

}  // namespace

Status quantize(const Problem& problem, Args args) { return with_lists(problem, args, true); }
Status dequantize(const Problem& problem, Args args) { return with_lists(problem, args, false); }
Status dynamic_quantize(const Problem& problem, Args args) { return with_tensors(problem, args, true); }
Status dynamic_dequantize(const Problem& problem, Args args) { return with_tensors(problem, args, false); }

}  // namespace partita::ref
