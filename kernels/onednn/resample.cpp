// SPDX-License-Identifier: Apache-2.0
// Interpolation and its gradient.
#include "kernels/onednn/rows.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::prop_kind;

auto axes_of_size_1(const TensorDesc& tensor) { return std::count(tensor.dims.begin(), tensor.dims.end(), 1); }

/// Source and target in one memory order without gaps: oneDNN 3.7 takes that for granted, and looks at the strides even
/// of axes of size 1.
struct Views {
  TensorDesc from, to;
};

const char* find_views(const Attrs& attrs, const TensorDesc& from_tensor, const TensorDesc& to_tensor, Views& views) {
  if (attrs.is(Attr::coordinate_transformation_mode, "align_corners")) return "oneDNN knows half_pixel only";
  const TensorDesc from = channel_first(from_tensor, attrs), to = channel_first(to_tensor, attrs);
  const TensorDesc& model = axes_of_size_1(from) < axes_of_size_1(to) ? from : to;
  views = {compact_like(model, from), compact_like(model, to)};
  if (!same_strides(views.from, from) || !same_strides(views.to, to)) {
    return "the tensors do not lie in one order without gaps";
  }
  // channel-first and channel-last cannot be told apart then, and oneDNN 3.7 mixes them up
  return elements(to.dims) == to.dims[0] * to.dims[1] ? "every channel has one element" : nullptr;
}

dnnl::algorithm algorithm_of(const Attrs& attrs) {
  return attrs.is(Attr::mode, "nearest") ? dnnl::algorithm::resampling_nearest : dnnl::algorithm::resampling_linear;
}

}  // namespace

const char* plan_resample(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (problem.op != OpKind::Interpolate) return "oneDNN interpolates only";
  Views views;
  if (const char* reason = find_views(problem.attrs, problem.in[0], problem.out[0], views)) return reason;
  const auto src = desc_of(views.from), dst = desc_of(views.to);
  const dnnl::resampling_forward::primitive_desc desc(cpu_engine(), prop_kind::forward_inference,
                                                      algorithm_of(problem.attrs), src, dst, plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src), run.writes(DNNL_ARG_DST, run.out(problem, 0), dst)});
  return nullptr;
}

const char* plan_resample_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  Views views;
  if (const char* reason = find_views(problem.attrs, problem.out[0], problem.in[1], views)) return reason;
  const auto diff_src = desc_of(views.from), diff_dst = desc_of(views.to);
  const dnnl::algorithm algorithm = algorithm_of(problem.attrs);
  const dnnl::resampling_forward::primitive_desc hint(cpu_engine(), prop_kind::forward_training, algorithm, diff_src,
                                                      diff_dst, plain_attr());
  const dnnl::resampling_backward::primitive_desc desc(cpu_engine(), algorithm, diff_src, diff_dst, hint, plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 1), diff_dst),
                 run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), diff_src)});
  return nullptr;
}

}  // namespace partita::onednn
