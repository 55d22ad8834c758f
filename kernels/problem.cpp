// SPDX-License-Identifier: Apache-2.0
// What is known of step kinds, and the printed form of tensor descriptions.
#include "kernels/problem.hpp"

#include <algorithm>
#include <array>

#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

constexpr auto kTraits = std::to_array<StepTraits>({
    {.name = "none"},
    {.name = "loop"},
    {.name = "pool_forward", .skeleton = true, .images = true, .keeps_axes = true, .adds_up = true},
    {.name = "pool_backward",
     .skeleton = true,
     .takes_folds = true,
     .images = true,
     .keeps_axes = true,
     .adds_up = true},
    {.name = "max_pool_backward",
     .front_port = 1,
     .skeleton = true,
     .takes_folds = true,
     .images = true,
     .keeps_axes = true,
     .adds_up = true},
    {.name = "max_pool_indices_backward", .skeleton = true, .adds_up = true},
    {.name = "convolution", .product = true, .skeleton = true, .adds_up = true},
    {.name = "convolution_backward_data", .product = true, .skeleton = true, .adds_up = true},
    {.name = "convolution_backward_weights", .adds_up = true},
    {.name = "matmul", .product = true, .skeleton = true, .adds_up = true},
    {.name = "softmax", .skeleton = true, .rows = true},
    {.name = "softmax_backward", .skeleton = true, .rows = true, .adds_up = true},
    {.name = "batch_norm", .keeps_axes = true, .adds_up = true},
    {.name = "batch_norm_backward", .keeps_axes = true, .adds_up = true},
    {.name = "layer_norm", .skeleton = true, .rows = true, .adds_up = true},
    {.name = "layer_norm_backward", .front_port = 1, .skeleton = true, .rows = true, .adds_up = true},
    {.name = "group_norm", .skeleton = true, .rows = true, .adds_up = true},
    {.name = "reduce", .adds_up = true},
    {.name = "resample", .skeleton = true, .images = true, .keeps_axes = true, .adds_up = true},
    {.name = "resample_backward",
     .front_port = 1,
     .skeleton = true,
     .images = true,
     .keeps_axes = true,
     .adds_up = true},
    {.name = "prelu_backward", .keeps_axes = true, .adds_up = true},
    {.name = "concat"},
    {.name = "dropout"},
    {.name = "tiles"},
});
static_assert(kTraits.size() == static_cast<size_t>(StepKind::tiles) + 1);
static_assert(std::ranges::none_of(kTraits, [](const StepTraits& t) { return t.name.empty(); }));

}  // namespace

const StepTraits& traits_of(StepKind kind) { return kTraits[static_cast<size_t>(kind)]; }

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

bool same_strides(const TensorDesc& a, const TensorDesc& b) {
  for (int d = 0; d < a.dims.size(); ++d)
    if (a.dims[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

TensorDesc with_axis_moved(TensorDesc desc, int from, int to) {
  move_axis(desc.dims, from, to);
  move_axis(desc.strides, from, to);
  return desc;
}

bool is_one_matrix(const TensorDesc& desc) {
  for (int d = 0; d + 2 < desc.dims.size(); ++d)
    if (desc.dims[d] != 1) return false;
  return true;
}

Problem copy_loop(const TensorDesc& from, const TensorDesc& to) {
  Problem loop;
  loop.step = StepKind::loop;
  loop.in.push_back(from);
  loop.out.push_back(to);
  ExprBuilder build(loop.back);
  build.store(0, build.load(0));
  return loop;
}

bool is_copy(const Problem& problem) {
  const auto& code = problem.back.code;
  return problem.step == StepKind::loop && problem.in.size() == 1 && problem.out.size() == 1 && code.size() == 2 &&
         code[0].op == ExprOp::load && code[1].op == ExprOp::store && problem.in[0].dtype == problem.out[0].dtype;
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
