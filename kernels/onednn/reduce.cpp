// SPDX-License-Identifier: Apache-2.0
// The reductions: sum, mean, product, maximum, minimum, and the norms L1 and L2.
#include "kernels/onednn/rows.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

struct Reduction {
  dnnl::algorithm algorithm;
  float p;  ///< order of the norm
};

Reduction reduction_of(OpKind op) {
  switch (op) {
    case OpKind::ReduceL1: return {dnnl::algorithm::reduction_norm_lp_sum, 1};
    case OpKind::ReduceL2: return {dnnl::algorithm::reduction_norm_lp_sum, 2};
    case OpKind::ReduceMax: return {dnnl::algorithm::reduction_max, 0};
    case OpKind::ReduceMin: return {dnnl::algorithm::reduction_min, 0};
    case OpKind::ReduceMean: return {dnnl::algorithm::reduction_mean, 0};
    case OpKind::ReduceProd: return {dnnl::algorithm::reduction_mul, 0};
    default: return {dnnl::algorithm::reduction_sum, 0};
  }
}

}  // namespace

const char* plan_reduce(const Problem& problem, const Target&, PrimitiveRun& run) {
  const TensorDesc& src = problem.in[0];
  const int rank = src.dims.size();
  std::vector<bool> reduced(static_cast<size_t>(rank));
  for (int64_t value : problem.attrs.dims(Attr::axes)) {
    const std::optional<int> axis = normal_axis(value, rank);
    if (!axis) return "an axis is out of range";
    reduced[static_cast<size_t>(*axis)] = true;
  }
  TensorDesc dst = problem.out[0];
  if (!problem.attrs.flag_or(Attr::keep_dims, false)) {
    for (int axis = 0; axis < rank; ++axis) {
      if (reduced[static_cast<size_t>(axis)]) dst = with_unit_axis(std::move(dst), axis);
    }
  }
  if (dst.dims == src.dims) return "nothing is reduced";
  const Reduction reduction = reduction_of(problem.op);
  const auto from = desc_of(src), to = desc_of(dst);
  const dnnl::reduction::primitive_desc desc(cpu_engine(), reduction.algorithm, from, to, reduction.p, 0.0f,
                                             plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC, run.in(problem, 0), from), run.writes(DNNL_ARG_DST, run.out(problem, 0), to)});
  return nullptr;
}

}  // namespace partita::onednn
