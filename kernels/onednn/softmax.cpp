// SPDX-License-Identifier: Apache-2.0
// SoftMax, LogSoftmax and their gradients.
#include "kernels/onednn/rows.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::prop_kind;

dnnl::algorithm algorithm_of(OpKind op) {
  return op == OpKind::LogSoftmax || op == OpKind::LogSoftmaxBackward ? dnnl::algorithm::softmax_log
                                                                      : dnnl::algorithm::softmax_accurate;
}

}  // namespace

const char* plan_softmax(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (problem.attrs.is(Attr::mode, "inf_as_zero")) return "oneDNN has no mode that turns slices of -inf into zeros";
  if (problem.out.size() > 1) return "oneDNN does not return the statistics";
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  const std::optional<int> axis = normal_axis(problem.attrs.i64(Attr::axis), problem.in[0].dims.size());
  if (!axis) return "`axis` is out of range";
  const auto src = desc_of(problem.in[0]), dst = desc_of(problem.out[0]);
  const dnnl::softmax_forward::primitive_desc desc(cpu_engine(), prop_kind::forward_inference,
                                                   algorithm_of(problem.op), src, dst, *axis, plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC, run.in(problem, 0), src), run.writes(DNNL_ARG_DST, run.out(problem, 0), dst)});
  return nullptr;
}

const char* plan_softmax_backward(const Problem& problem, const Target&, PrimitiveRun& run) {
  if (const char* reason = refuse_mixed_orders(problem)) return reason;
  const std::optional<int> axis = normal_axis(problem.attrs.i64(Attr::axis), problem.in[0].dims.size());
  if (!axis) return "`axis` is out of range";
  const auto diff_dst = desc_of(problem.in[0]), dst = desc_of(problem.in[1]), diff_src = desc_of(problem.out[0]);
  const dnnl::algorithm algorithm = algorithm_of(problem.op);
  const dnnl::softmax_forward::primitive_desc hint(cpu_engine(), prop_kind::forward_training, algorithm, dst, dst,
                                                   *axis, plain_attr());
  const dnnl::softmax_backward::primitive_desc desc(cpu_engine(), algorithm, diff_src, diff_dst, dst, *axis, hint,
                                                    plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 0), diff_dst),
                 run.reads(DNNL_ARG_DST, run.in(problem, 1), dst),
                 run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), diff_src)});
  return nullptr;
}

}  // namespace partita::onednn
