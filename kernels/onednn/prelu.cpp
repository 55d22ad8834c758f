// SPDX-License-Identifier: Apache-2.0
// The gradients of PReLU.
#include "kernels/onednn/rows.hpp"
#include "src/base/axes.hpp"

namespace partita::onednn {
namespace {

/// The slope with the rank of src: a vector belongs to the channels, other ranks are aligned at the right.
TensorDesc aligned_slope(TensorDesc slope, const TensorDesc& src, const Attrs& attrs) {
  const int rank = src.dims.size();
  const int channel = channel_axis(attrs, rank);
  if (slope.dims.size() == 1 && slope.dims[0] == src.dims[channel]) {
    for (int axis = channel + 1; axis < rank; ++axis) slope = with_unit_axis(slope, slope.dims.size());
  }
  while (slope.dims.size() < rank) slope = with_unit_axis(slope, 0);
  return slope;
}

/// True for a slope of the shape of src, one a channel, or a single one; what else oneDNN 3.7 takes, it computes
/// wrongly.
bool is_common(const TensorDesc& slope, const TensorDesc& src) {
  if (slope.dims == src.dims) return true;
  for (int axis = 0; axis < src.dims.size(); ++axis) {
    if (axis != 1 && slope.dims[axis] != 1) return false;
  }
  return true;
}

dnnl::memory::desc slope_desc(const TensorDesc& slope, const TensorDesc& src, const Attrs& attrs) {
  return desc_of(channel_first(aligned_slope(slope, src, attrs), attrs));
}

}  // namespace

const char* plan_prelu_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  const Attrs& attrs = problem.attrs;
  const TensorDesc& model = problem.in[0];
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  if (!is_common(channel_first(aligned_slope(problem.in[1], model, attrs), attrs), channel_first(model, attrs))) {
    return "the slope is broadcast in an unusual way";
  }
  const auto src = desc_of(channel_first(model, attrs)), slope = slope_desc(problem.in[1], model, attrs);
  const auto diff_dst = desc_of(channel_first(problem.in[2], attrs));
  const auto diff_src = desc_of(channel_first(problem.out[0], attrs));
  const auto diff_slope = slope_desc(problem.out[1], model, attrs);
  const dnnl::prelu_forward::primitive_desc hint(cpu_engine(), dnnl::prop_kind::forward_training, src, slope, src,
                                                 plain_attr());
  const dnnl::prelu_backward::primitive_desc desc(cpu_engine(), src, slope, diff_src, diff_slope, diff_dst, hint,
                                                  plain_attr());
  run.add(desc,
          {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src), run.reads(DNNL_ARG_WEIGHTS, run.in(problem, 1), slope),
           run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 2), diff_dst),
           run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), diff_src),
           run.writes(DNNL_ARG_DIFF_WEIGHTS, run.out(problem, 1), diff_slope)});
  return nullptr;
}

}  // namespace partita::onednn
