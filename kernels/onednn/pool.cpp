// SPDX-License-Identifier: Apache-2.0
// Pooling forward and backward.
#include "kernels/onednn/rows.hpp"
#include "kernels/pool_geometry.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

constexpr const char* kEmptyWindow = "a window lies completely in the padding";
constexpr int64_t kMostTaps = 1 << 14;  ///< along x

dnnl::algorithm algorithm_of(const Problem& problem) {
  if (problem.op == OpKind::MaxPool || problem.op == OpKind::MaxPoolBackward) return dnnl::algorithm::pooling_max;
  return problem.attrs.flag(Attr::exclude_pad) ? dnnl::algorithm::pooling_avg_exclude_padding
                                               : dnnl::algorithm::pooling_avg_include_padding;
}

/// Null where oneDNN has the problem's divisor and results.
const char* refuse_extensions(const Problem& problem, const TensorDesc& wide, const TensorDesc& narrow) {
  if (lacks_batch_axis(problem)) return "oneDNN wants a batch axis";
  if (has_indices(problem)) return "oneDNN's indices lie within windows";
  // Its code has no room for some of these, and primitives that it makes later in the process crash then.
  if (problem.attrs.dims(Attr::kernel).back() > kMostTaps) return "oneDNN's code spells out each cell along x";
  const PoolGeometry g = pool_geometry(problem, wide.dims, narrow.dims);
  if (g.divides_by == PoolDivisor::fixed) return "oneDNN computes the divisor itself";
  for (int i = 0; g.divides_by == PoolDivisor::padded_box && i < g.axes(); ++i)
    for (int64_t o = 0; o < g.dst[i]; ++o)
      if (g.counted(i, o) != g.kernel[i]) return "oneDNN counts cells beyond the padding, too";
  return nullptr;
}

struct Pool {
  memory::desc wide, narrow;
  memory::dims kernel;
  Windows windows;
};

Pool pool_of(const Problem& problem, const TensorDesc& wide_tensor, const TensorDesc& narrow_tensor) {
  const TensorDesc wide = channel_first(wide_tensor, problem.attrs);
  const TensorDesc narrow = channel_first(narrow_tensor, problem.attrs);
  const Dims kernel = problem.attrs.dims(Attr::kernel);
  return {desc_of(wide), desc_of(narrow), dims_of(kernel), windows_of(problem.attrs, wide.dims, narrow.dims, kernel)};
}

dnnl::pooling_forward::primitive_desc forward_desc(const Problem& problem, const Pool& p, prop_kind kind) {
  const Windows& w = p.windows;
  return {cpu_engine(), kind,  algorithm_of(problem), p.wide, p.narrow, w.strides, p.kernel, w.dilations,
          w.begin,      w.end, plain_attr()};
}

dnnl::pooling_backward::primitive_desc backward_desc(const Problem& problem, const Pool& p,
                                                     const dnnl::pooling_forward::primitive_desc& forward) {
  const Windows& w = p.windows;
  return {cpu_engine(), algorithm_of(problem), p.wide, p.narrow, w.strides, p.kernel, w.dilations, w.begin, w.end,
          forward,      plain_attr()};
}

}  // namespace

const char* plan_pool_forward(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_extensions(problem, problem.in[0], problem.out[0])) return reason;
  const Pool p = pool_of(problem, problem.in[0], problem.out[0]);
  if (!p.windows.each_has_a_cell) return kEmptyWindow;
  run.add(
      forward_desc(problem, p, prop_kind::forward_inference),
      {run.reads(DNNL_ARG_SRC, run.in(problem, 0), p.wide), run.writes(DNNL_ARG_DST, run.out(problem, 0), p.narrow)});
  return nullptr;
}

const char* plan_pool_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_extensions(problem, problem.out[0], problem.in[0])) return reason;
  const Pool p = pool_of(problem, problem.out[0], problem.in[0]);
  if (!p.windows.each_has_a_cell) return kEmptyWindow;
  run.add(backward_desc(problem, p, forward_desc(problem, p, prop_kind::forward_training)),
          {run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 0), p.narrow),
           run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), p.wide)});
  return nullptr;
}

const char* plan_max_pool_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_extensions(problem, problem.in[0], problem.in[1])) return reason;
  // the maxima's places come from a second forward pass, whose result itself nobody needs
  Pool forward_pool = pool_of(problem, problem.in[0], problem.in[1]);
  if (!forward_pool.windows.each_has_a_cell) return kEmptyWindow;
  const auto forward = forward_desc(problem, forward_pool, prop_kind::forward_training);
  Pool backward_pool = forward_pool;
  backward_pool.wide = desc_of(channel_first(problem.out[0], problem.attrs));
  const auto backward = backward_desc(problem, backward_pool, forward);
  const Place maxima = run.scratch(forward.dst_desc().get_size());
  const Place places = run.scratch(forward.workspace_desc().get_size());
  run.add(forward, {run.reads(DNNL_ARG_SRC, run.in(problem, 0), forward_pool.wide),
                    run.writes(DNNL_ARG_DST, maxima, forward.dst_desc()),
                    run.writes(DNNL_ARG_WORKSPACE, places, forward.workspace_desc())});
  run.add(backward, {run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 1), backward_pool.narrow),
                     run.reads(DNNL_ARG_WORKSPACE, places, backward.workspace_desc()),
                     run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), backward_pool.wide)});
  return nullptr;
}

}  // namespace partita::onednn
