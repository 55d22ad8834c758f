// SPDX-License-Identifier: Apache-2.0
// MatMul with bias.
#include "kernels/onednn/matmul_views.hpp"
#include "kernels/onednn/rows.hpp"

namespace partita::onednn {
namespace {

/// True where the matrices of a batch interleave in memory, or no axis of a matrix is contiguous: oneDNN 3.7 accepts
/// such operands and multiplies them wrongly.
bool is_unusual(const TensorDesc& tensor) {
  const int row = tensor.dims.size() - 2, column = row + 1;
  const int64_t matrix =
      (tensor.dims[row] - 1) * tensor.strides[row] + (tensor.dims[column] - 1) * tensor.strides[column] + 1;
  for (int axis = 0; axis < row; ++axis) {
    if (tensor.dims[axis] > 1 && tensor.strides[axis] < matrix) return true;
  }
  const auto contiguous = [&](int axis) { return tensor.dims[axis] > 1 && tensor.strides[axis] == 1; };
  return matrix > 1 && !contiguous(row) && !contiguous(column);
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
  const MatmulViews v = matmul_views(problem);
  if (is_unusual(v.a) || is_unusual(v.b) || is_unusual(v.dst)) return "the matrices lie in memory in an unusual way";
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
