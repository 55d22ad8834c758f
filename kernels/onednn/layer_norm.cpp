// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last axis, forward and backward.
#include <array>

#include "kernels/onednn/norm_parts.hpp"
#include "kernels/onednn/rows.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;

constexpr int kMaxOneDnnRank = 5;

normalization_flags affine_flags(bool scale, bool shift) {
  return (scale ? normalization_flags::use_scale : normalization_flags::none) |
         (shift ? normalization_flags::use_shift : normalization_flags::none);
}

const char* refuse_axes(const Problem& problem) {
  const int rank = problem.in[0].dims.size();
  const std::optional<int> begin = normal_axis(problem.attrs.i64(Attr::begin_norm_axis), rank);
  return begin && *begin == rank - 1 ? nullptr : "oneDNN normalises the last axis only";
}

/// Ranks oneDNN does not take become [1, n] or [rows, n]; dense tensors only, the others keep their rank.
memory::desc rows_desc(const TensorDesc& tensor) {
  const int rank = tensor.dims.size();
  if (rank >= 2 && (rank <= kMaxOneDnnRank || !is_dense(tensor.dims, tensor.strides))) return desc_of(tensor);
  const int64_t n = tensor.dims.back();
  return desc_of(dense({.dtype = tensor.dtype, .dims = {elements(tensor.dims) / n, n}, .strides = {0, 0}}));
}

/// oneDNN's kernels take rows for evenly spaced without gaps, whatever the strides say.
const char* refuse_gaps(std::span<const TensorDesc> tensors) {
  const bool dense =
      std::all_of(tensors.begin(), tensors.end(), [](const TensorDesc& t) { return is_dense(t.dims, t.strides); });
  return dense ? nullptr : "a tensor is not dense";
}

/// One statistic for each row of `src`, dense.
memory::desc statistics_desc(const memory::desc& src) {
  memory::dims dims = src.get_dims();
  dims.pop_back();
  Dims strides(static_cast<int>(dims.size()), 1);
  for (int i = strides.size() - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims[static_cast<size_t>(i) + 1];
  return {dims, memory::data_type::f32, dims_of(strides)};
}

}  // namespace

const char* plan_layer_norm(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (problem.op == OpKind::RMSNorm) return "oneDNN has no normalisation by the root mean square";
  if (const char* reason = refuse_axes(problem)) return reason;
  if (const char* reason = refuse_gaps(std::array{problem.in[0], problem.out[0]})) return reason;
  const std::span<const TensorDesc> vectors_in(problem.in.begin() + 1, problem.in.end());
  const std::span<const TensorDesc> vectors_out(problem.out.begin() + 1, problem.out.end());
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  if (!all_dense_floats(vectors_in) || !all_dense_floats(vectors_out)) return kVectorsNotDense;
  const bool affine = problem.attrs.flag_or(Attr::use_affine, true), statistics = problem.out.size() > 2;
  const bool scale = affine && problem.in.size() > 1, shift = affine && problem.in.size() > 2;
  const auto src = rows_desc(problem.in[0]), dst = rows_desc(problem.out[0]), stat = statistics_desc(src);
  const dnnl::layer_normalization_forward::primitive_desc desc(
      cpu_engine(), statistics ? prop_kind::forward_training : prop_kind::forward_inference, src, dst, stat,
      problem.attrs.f32(Attr::epsilon), affine_flags(scale, shift), plain_attr());
  std::vector<Operand> operands = {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src),
                                   run.writes(DNNL_ARG_DST, run.out(problem, 0), dst)};
  if (scale) operands.push_back(run.reads(DNNL_ARG_SCALE, run.in(problem, 1), desc.weights_desc()));
  if (shift) operands.push_back(run.reads(DNNL_ARG_SHIFT, run.in(problem, 2), desc.weights_desc()));
  if (statistics) {
    operands.push_back(run.writes(DNNL_ARG_MEAN, run.out(problem, 1), stat));
    operands.push_back(run.writes(DNNL_ARG_VARIANCE, run.out(problem, 2), stat));
  }
  run.add(desc, std::move(operands));
  return nullptr;
}

const char* plan_layer_norm_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_axes(problem)) return reason;
  if (const char* reason = refuse_gaps(std::array{problem.in[0], problem.in[1], problem.out[0]})) return reason;
  const std::span<const TensorDesc> vectors_in(problem.in.begin() + 2, problem.in.end());
  const std::span<const TensorDesc> vectors_out(problem.out.begin() + 1, problem.out.end());
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  if (!all_dense_floats(vectors_in) || !all_dense_floats(vectors_out)) return kVectorsNotDense;
  const bool affine = problem.attrs.flag_or(Attr::use_affine, true), diffs = problem.out.size() > 2;
  const bool gamma = affine && problem.in.size() > 4;
  const auto src = rows_desc(problem.in[0]), diff_dst = rows_desc(problem.in[1]), diff_src = rows_desc(problem.out[0]);
  const auto stat = statistics_desc(src);
  const float epsilon = problem.attrs.f32(Attr::epsilon);
  const normalization_flags flags = affine_flags(gamma || diffs, diffs);
  const dnnl::layer_normalization_forward::primitive_desc hint(cpu_engine(), prop_kind::forward_training, src, src,
                                                               stat, epsilon, flags, plain_attr());
  const dnnl::layer_normalization_backward::primitive_desc desc(
      cpu_engine(), diffs ? prop_kind::backward : prop_kind::backward_data, diff_src, diff_dst, src, stat, epsilon,
      flags, hint, plain_attr());
  std::vector<Operand> operands = {
      run.reads(DNNL_ARG_SRC, run.in(problem, 0), src), run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 1), diff_dst),
      run.reads(DNNL_ARG_MEAN, run.in(problem, 2), stat), run.reads(DNNL_ARG_VARIANCE, run.in(problem, 3), stat),
      run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), diff_src)};
  if (gamma || diffs) {
    const Place scale = gamma ? run.in(problem, 4) : ones(run, problem.in[0].dims.back());
    operands.push_back(run.reads(DNNL_ARG_SCALE, scale, desc.weights_desc()));
    // oneDNN asks for the shift where its gradient is wanted; no formula reads it.
    if (diffs) operands.push_back(run.reads(DNNL_ARG_SHIFT, scale, desc.weights_desc()));
  }
  if (diffs) {
    operands.push_back(run.writes(DNNL_ARG_DIFF_SCALE, run.out(problem, 1), desc.diff_weights_desc()));
    operands.push_back(run.writes(DNNL_ARG_DIFF_SHIFT, run.out(problem, 2), desc.diff_weights_desc()));
  }
  run.add(desc, std::move(operands));
  return nullptr;
}

}  // namespace partita::onednn
