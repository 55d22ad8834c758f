// SPDX-License-Identifier: Apache-2.0
// Interpolation and its gradient.
#include "kernels/onednn/rows.hpp"

namespace partita::onednn {
namespace {

using dnnl::prop_kind;

const char* refuse_coordinates(const Attrs& attrs) {
  return attrs.is(Attr::coordinate_transformation_mode, "align_corners") ? "oneDNN knows half_pixel coordinates only"
                                                                         : nullptr;
}

dnnl::algorithm algorithm_of(const Attrs& attrs) {
  return attrs.is(Attr::mode, "nearest") ? dnnl::algorithm::resampling_nearest : dnnl::algorithm::resampling_linear;
}

}  // namespace

const char* plan_resample(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_coordinates(problem.attrs)) return reason;
  const auto src = desc_of(channel_first(problem.in[0], problem.attrs));
  const auto dst = desc_of(channel_first(problem.out[0], problem.attrs));
  const dnnl::resampling_forward::primitive_desc desc(cpu_engine(), prop_kind::forward_inference,
                                                      algorithm_of(problem.attrs), src, dst, plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src), run.writes(DNNL_ARG_DST, run.out(problem, 0), dst)});
  return nullptr;
}

const char* plan_resample_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_coordinates(problem.attrs)) return reason;
  const auto diff_dst = desc_of(channel_first(problem.in[1], problem.attrs));
  const auto diff_src = desc_of(channel_first(problem.out[0], problem.attrs));
  const dnnl::algorithm algorithm = algorithm_of(problem.attrs);
  const dnnl::resampling_forward::primitive_desc hint(cpu_engine(), prop_kind::forward_training, algorithm, diff_src,
                                                      diff_dst, plain_attr());
  const dnnl::resampling_backward::primitive_desc desc(cpu_engine(), algorithm, diff_src, diff_dst, hint, plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 1), diff_dst),
                 run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), diff_src)});
  return nullptr;
}

}  // namespace partita::onednn
