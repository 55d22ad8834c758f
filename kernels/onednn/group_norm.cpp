// SPDX-License-Identifier: Apache-2.0
// Group normalisation.
#include "kernels/onednn/norm_parts.hpp"
#include "kernels/onednn/rows.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {

const char* plan_group_norm(const Problem& problem, const Target&, PrimitiveRun& run) {
  using dnnl::normalization_flags;
  const std::span<const TensorDesc> vectors_in(problem.in.begin() + 1, problem.in.end());
  const std::span<const TensorDesc> vectors_out(problem.out.begin() + 1, problem.out.end());
  // oneDNN 3.7 takes [N, C] without a word, and then writes out of bounds.
  if (problem.in[0].dims.size() < 3) return "there is no spatial axis";
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  // Its kernels take samples for evenly spaced without gaps, whatever the strides say.
  for (const TensorDesc* t : {&problem.in[0], &problem.out[0]})
    if (span_of(t->dims, t->strides) != elements(t->dims)) return "a tensor has gaps";
  if (!all_dense_floats(vectors_in) || !all_dense_floats(vectors_out)) return kVectorsNotDense;
  const bool affine = problem.attrs.flag_or(Attr::use_affine, true), statistics = problem.out.size() > 2;
  const bool scale = affine && problem.in.size() > 1, shift = affine && problem.in.size() > 2;
  const auto src = desc_of(channel_first(problem.in[0], problem.attrs));
  const auto dst = desc_of(channel_first(problem.out[0], problem.attrs));
  const auto flags = (scale ? normalization_flags::use_scale : normalization_flags::none) |
                     (shift ? normalization_flags::use_shift : normalization_flags::none);
  const dnnl::group_normalization_forward::primitive_desc desc(
      cpu_engine(), statistics ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, src, dst,
      problem.attrs.i64(Attr::groups), problem.attrs.f32(Attr::epsilon), flags, plain_attr());
  std::vector<Operand> operands = {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src),
                                   run.writes(DNNL_ARG_DST, run.out(problem, 0), dst)};
  if (scale) operands.push_back(run.reads(DNNL_ARG_SCALE, run.in(problem, 1), desc.weights_desc()));
  if (shift) operands.push_back(run.reads(DNNL_ARG_SHIFT, run.in(problem, 2), desc.weights_desc()));
  if (statistics) {
    operands.push_back(run.writes(DNNL_ARG_MEAN, run.out(problem, 1), desc.mean_desc()));
    operands.push_back(run.writes(DNNL_ARG_VARIANCE, run.out(problem, 2), desc.variance_desc()));
  }
  run.add(desc, std::move(operands));
  return nullptr;
}

}  // namespace partita::onednn
