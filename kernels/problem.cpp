// SPDX-License-Identifier: Apache-2.0
// Names of step kinds and the printed form of tensor descriptions.
#include "kernels/problem.hpp"

#include <array>

#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

constexpr std::array<std::string_view, 23> kStepNames = {"none",
                                                         "loop",
                                                         "pool_forward",
                                                         "pool_backward",
                                                         "max_pool_backward",
                                                         "max_pool_indices_backward",
                                                         "convolution",
                                                         "convolution_backward_data",
                                                         "convolution_backward_weights",
                                                         "matmul",
                                                         "softmax",
                                                         "softmax_backward",
                                                         "batch_norm",
                                                         "batch_norm_backward",
                                                         "layer_norm",
                                                         "layer_norm_backward",
                                                         "group_norm",
                                                         "reduce",
                                                         "resample",
                                                         "resample_backward",
                                                         "prelu_backward",
                                                         "dropout",
                                                         "tiles"};
static_assert(kStepNames.size() == static_cast<size_t>(StepKind::tiles) + 1);

}  // namespace

std::string_view name_of(StepKind kind) { return kStepNames[static_cast<size_t>(kind)]; }

int front_port(StepKind step) {
  switch (step) {
    case StepKind::max_pool_backward:
    case StepKind::layer_norm_backward:
    case StepKind::resample_backward: return 1;
    default: return 0;
  }
}

Expr front_expression(const Problem& problem) {
  Expr e = problem.front;
  if (e.empty()) e.result = ExprBuilder(e).load(front_port(problem.step));
  return e;
}

Expr back_expression(const Problem& problem) {
  Expr e = problem.back;
  ExprBuilder b(e);
  if (e.empty()) b.store(0, b.skeleton());
  return e;
}

std::string text_of(const TensorDesc& desc) {
  std::string text = str(name_of(desc.dtype), "[", text_of(desc.dims), "]");
  if (!is_dense(desc.dims, desc.strides)) text += str("/[", text_of(desc.strides), "]");
  if (desc.offset != 0) text += str("+", desc.offset);
  return text;
}

bool makes_integer(const Instr& in, const Problem& problem) {
  switch (in.op) {
    case ExprOp::load: return problem.in[static_cast<size_t>(in.imm)].dtype == Dtype::s32;
    case ExprOp::index_s32:
    case ExprOp::pair_s32:
    case ExprOp::add_s32:
    case ExprOp::sub_s32:
    case ExprOp::mul_s32:
    case ExprOp::max_s32:
    case ExprOp::min_s32:
    case ExprOp::to_s32: return true;
    default: return false;
  }
}

}  // namespace partita
