// SPDX-License-Identifier: Apache-2.0
// Batch normalisation in training: forward with running statistics, and backward.
#include "kernels/onednn/norm_parts.hpp"
#include "kernels/onednn/rows.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;

constexpr float kDefaultMomentum = 0.5f;

normalization_flags flags_of(bool scale, bool shift) {
  return (scale ? normalization_flags::use_scale : normalization_flags::none) |
         (shift ? normalization_flags::use_shift : normalization_flags::none);
}

/// running = momentum * old + (1 - momentum) * of this batch
void add_running(const Problem& problem, int old_port, int batch_port, int running_port, PrimitiveRun& run) {
  const float momentum = problem.attrs.f32_or(Attr::momentum, kDefaultMomentum);
  const Place old = run.in(problem, old_port), batch = run.out(problem, batch_port);
  const Place running = run.out(problem, running_port);
  const int64_t channels = elements(problem.out[static_cast<size_t>(running_port)].dims);
  run.add([=](const Addresses& addresses) {
    const float* before = static_cast<const float*>(addresses.at(old));
    const float* now = static_cast<const float*>(addresses.at(batch));
    float* result = static_cast<float*>(addresses.at(running));
    for (int64_t c = 0; c < channels; ++c) result[c] = momentum * before[c] + (1 - momentum) * now[c];
  });
}

dnnl::batch_normalization_forward::primitive_desc forward_desc(const Problem& problem, const dnnl::memory::desc& src,
                                                               const dnnl::memory::desc& dst,
                                                               normalization_flags flags) {
  return {cpu_engine(), prop_kind::forward_training, src, dst, problem.attrs.f32(Attr::epsilon), flags, plain_attr()};
}

}  // namespace

const char* plan_batch_norm(const Problem& problem, const Target&, PrimitiveRun& run) {
  const std::span<const TensorDesc> vectors_in(problem.in.begin() + 1, problem.in.end());
  const std::span<const TensorDesc> vectors_out(problem.out.begin() + 1, problem.out.end());
  if (problem.out.size() != 5) return "not all five outputs are asked for";
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  if (!all_dense_floats(vectors_in) || !all_dense_floats(vectors_out)) return kVectorsNotDense;
  const bool scale = problem.in.size() > 3, shift = problem.in.size() > 4;
  const auto src = desc_of(channel_first(problem.in[0], problem.attrs));
  const auto dst = desc_of(channel_first(problem.out[0], problem.attrs));
  const auto desc = forward_desc(problem, src, dst, flags_of(scale, shift));
  std::vector<Operand> operands = {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src),
                                   run.writes(DNNL_ARG_DST, run.out(problem, 0), dst),
                                   run.writes(DNNL_ARG_MEAN, run.out(problem, 3), desc.mean_desc()),
                                   run.writes(DNNL_ARG_VARIANCE, run.out(problem, 4), desc.variance_desc())};
  if (scale) operands.push_back(run.reads(DNNL_ARG_SCALE, run.in(problem, 3), desc.weights_desc()));
  if (shift) operands.push_back(run.reads(DNNL_ARG_SHIFT, run.in(problem, 4), desc.weights_desc()));
  run.add(desc, std::move(operands));
  add_running(problem, /*old_port=*/1, /*batch_port=*/3, /*running_port=*/1, run);
  add_running(problem, /*old_port=*/2, /*batch_port=*/4, /*running_port=*/2, run);
  return nullptr;
}

const char* plan_batch_norm_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  const std::span<const TensorDesc> vectors_in(problem.in.begin() + 2, problem.in.end());
  const std::span<const TensorDesc> vectors_out(problem.out.begin() + 1, problem.out.end());
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  if (!all_dense_floats(vectors_in) || !all_dense_floats(vectors_out)) return kVectorsNotDense;
  const bool gamma = problem.in.size() > 4, diff_scale = problem.out.size() > 1, diff_shift = problem.out.size() > 2;
  const auto src = desc_of(channel_first(problem.in[0], problem.attrs));
  const auto diff_dst = desc_of(channel_first(problem.in[1], problem.attrs));
  const auto diff_src = desc_of(channel_first(problem.out[0], problem.attrs));
  // asked for diff_src with gamma only, oneDNN 3.7 fails at execution: the gradient of gamma is always computed
  const bool scale = gamma || diff_scale;
  const normalization_flags flags = flags_of(scale, diff_shift);
  const auto hint = forward_desc(problem, src, src, flags);
  const dnnl::batch_normalization_backward::primitive_desc desc(
      cpu_engine(), scale ? prop_kind::backward : prop_kind::backward_data, diff_src, diff_dst, src,
      problem.attrs.f32(Attr::epsilon), flags, hint, plain_attr());
  std::vector<Operand> operands = {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src),
                                   run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 1), diff_dst),
                                   run.reads(DNNL_ARG_MEAN, run.in(problem, 2), desc.mean_desc()),
                                   run.reads(DNNL_ARG_VARIANCE, run.in(problem, 3), desc.variance_desc()),
                                   run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), diff_src)};
  if (scale) {
    const dnnl::memory::desc vector = desc.diff_weights_desc();
    const Place gammas = gamma ? run.in(problem, 4) : ones(run, elements(problem.in[2].dims));
    operands.push_back(run.reads(DNNL_ARG_SCALE, gammas, desc.weights_desc()));
    const Place gradient = diff_scale ? run.out(problem, 1) : run.scratch(vector.get_size());
    operands.push_back(run.writes(DNNL_ARG_DIFF_SCALE, gradient, vector));
  }
  if (diff_shift) operands.push_back(run.writes(DNNL_ARG_DIFF_SHIFT, run.out(problem, 2), desc.diff_weights_desc()));
  run.add(desc, std::move(operands));
  return nullptr;
}

}  // namespace partita::onednn
