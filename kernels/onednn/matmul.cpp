// SPDX-License-Identifier: Apache-2.0
// MatMul: transposes become strides, missing axes become axes of size 1.
#include "kernels/onednn/rows.hpp"

namespace partita::onednn {
namespace {

struct Views {
  TensorDesc a, b, dst;
  std::vector<TensorDesc> bias;  ///< none or one
};

void swap_last_axes(TensorDesc& tensor) {
  const int last = tensor.dims.size() - 1;
  std::swap(tensor.dims[last], tensor.dims[last - 1]);
  std::swap(tensor.strides[last], tensor.strides[last - 1]);
}

void widen(TensorDesc& tensor, int rank) {
  while (tensor.dims.size() < rank) tensor = with_unit_axis(std::move(tensor), 0);
}

Views views_of(const Problem& problem) {
  Views v{problem.in[0], problem.in[1], problem.out[0], {}};
  const bool row_vector = v.a.dims.size() == 1, column_vector = v.b.dims.size() == 1;
  if (problem.in.size() > 2) {
    v.bias.push_back(problem.in[2]);
    widen(v.bias[0], v.dst.dims.size());
  }
  if (!row_vector && problem.attrs.flag_or(Attr::transpose_a, false)) swap_last_axes(v.a);
  if (!column_vector && problem.attrs.flag_or(Attr::transpose_b, false)) swap_last_axes(v.b);
  const auto insert = [&](int from_end) {
    v.dst = with_unit_axis(v.dst, v.dst.dims.size() - from_end);
    for (TensorDesc& bias : v.bias) bias = with_unit_axis(bias, bias.dims.size() - from_end);
  };
  if (column_vector) {
    v.b = with_unit_axis(v.b, 1);
    insert(0);
  }
  if (row_vector) {
    v.a = with_unit_axis(v.a, 0);
    insert(1);
  }
  widen(v.a, v.dst.dims.size());
  widen(v.b, v.dst.dims.size());
  return v;
}

dnnl::accumulation_mode accumulation_of(const Attrs& attrs) {
  if (attrs.is(Attr::accumulation_mode, "relaxed")) return dnnl::accumulation_mode::relaxed;
  if (attrs.is(Attr::accumulation_mode, "any")) return dnnl::accumulation_mode::any;
  if (attrs.is(Attr::accumulation_mode, "f32")) return dnnl::accumulation_mode::f32;
  if (attrs.is(Attr::accumulation_mode, "s32")) return dnnl::accumulation_mode::s32;
  if (attrs.is(Attr::accumulation_mode, "f16")) return dnnl::accumulation_mode::f16;
  return dnnl::accumulation_mode::strict;
}

}  // namespace

const char* plan_matmul(const Problem& problem, const Target& target, PrimitiveRun& run) {
  if (problem.in[0].dims.empty() || problem.in[1].dims.empty()) return "an operand is a scalar";
  const Views v = views_of(problem);
  const dnnl::memory::desc a = desc_of(v.a), b = desc_of(v.b), dst = desc_of(v.dst);
  const dnnl::memory::desc bias = v.bias.empty() ? dnnl::memory::desc() : desc_of(v.bias[0]);
  dnnl::primitive_attr attr = math_attr(target);
  attr.set_accumulation_mode(accumulation_of(problem.attrs));
  const dnnl::matmul::primitive_desc desc(cpu_engine(), a, b, bias, dst, attr);
  std::vector<Operand> operands = {run.reads(DNNL_ARG_SRC, run.in(problem, 0), a),
                                   run.reads(DNNL_ARG_WEIGHTS, run.in(problem, 1), b),
                                   run.writes(DNNL_ARG_DST, run.out(problem, 0), dst)};
  if (!v.bias.empty()) operands.push_back(run.reads(DNNL_ARG_BIAS, run.in(problem, 2), bias));
  run.add(desc, std::move(operands));
  return nullptr;
}

}  // namespace partita::onednn
