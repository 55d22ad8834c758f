// SPDX-License-Identifier: Apache-2.0
// Operators with a table of kernels take oneDNN's rows of it; element-wise operators and movement are spelled here.
#include "tests/bench/one_primitive.hpp"

#include <memory>
#include <string_view>

#include "kernels/onednn/primitive_run.hpp"
#include "kernels/pool_geometry.hpp"
#include "passes/lower/lowering.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::bench {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using onednn::cpu_engine;
using onednn::desc_of;
using onednn::Operand;
using onednn::plain_attr;
using onednn::PrimitiveRun;

struct Eltwise {
  algorithm kind = algorithm::undef;
  float alpha = 0, beta = 0;
};

Eltwise eltwise_of(OpKind op, const Attrs& a) {
  const bool erf = a.is(Attr::mode, "gelu_erf");
  switch (op) {
    case OpKind::Abs: return {algorithm::eltwise_abs};
    case OpKind::Clamp: return {algorithm::eltwise_clip_v2, a.f32(Attr::min), a.f32(Attr::max)};
    case OpKind::Elu: return {algorithm::eltwise_elu, a.f32(Attr::alpha)};
    case OpKind::Exp: return {algorithm::eltwise_exp};
    case OpKind::GELU: return {erf ? algorithm::eltwise_gelu_erf : algorithm::eltwise_gelu_tanh};
    case OpKind::HardSigmoid: return {algorithm::eltwise_hardsigmoid, a.f32(Attr::alpha), a.f32(Attr::beta)};
    case OpKind::HardSwish: return {algorithm::eltwise_hardswish, 1.0f / 6, 0.5f};
    case OpKind::LeakyReLU: return {algorithm::eltwise_relu, a.f32(Attr::alpha)};
    case OpKind::Log: return {algorithm::eltwise_log};
    case OpKind::Mish: return {algorithm::eltwise_mish};
    case OpKind::Pow: return {algorithm::eltwise_pow, 1, a.f32(Attr::beta)};
    case OpKind::Reciprocal: return {algorithm::eltwise_pow, 1, -1};
    case OpKind::ReLU: return {algorithm::eltwise_relu};
    case OpKind::Round: return {algorithm::eltwise_round};
    case OpKind::Sigmoid: return {algorithm::eltwise_logistic};
    case OpKind::SoftPlus: return {algorithm::eltwise_soft_relu, a.f32(Attr::beta)};
    case OpKind::Sqrt: return {algorithm::eltwise_sqrt};
    case OpKind::Square: return {algorithm::eltwise_square};
    case OpKind::Tanh: return {algorithm::eltwise_tanh};
    default: return {};
  }
}

/// Of a gradient; oneDNN has algorithms of their own for those that work from the forward result.
Eltwise gradient_of(OpKind op, const Attrs& a) {
  const bool dst = a.flag_or(Attr::use_dst, false), erf = a.is(Attr::mode, "gelu_erf");
  switch (op) {
    case OpKind::AbsBackward: return {algorithm::eltwise_abs};
    case OpKind::ClampBackward:
      return {dst ? algorithm::eltwise_clip_v2_use_dst_for_bwd : algorithm::eltwise_clip_v2, a.f32(Attr::min),
              a.f32(Attr::max)};
    case OpKind::EluBackward:
      return {dst ? algorithm::eltwise_elu_use_dst_for_bwd : algorithm::eltwise_elu, a.f32(Attr::alpha)};
    case OpKind::GELUBackward: return {erf ? algorithm::eltwise_gelu_erf : algorithm::eltwise_gelu_tanh};
    case OpKind::HardSigmoidBackward: return {algorithm::eltwise_hardsigmoid, a.f32(Attr::alpha), a.f32(Attr::beta)};
    case OpKind::HardSwishBackward: return {algorithm::eltwise_hardswish, 1.0f / 6, 0.5f};
    case OpKind::MishBackward: return {algorithm::eltwise_mish};
    case OpKind::ReLUBackward: return {dst ? algorithm::eltwise_relu_use_dst_for_bwd : algorithm::eltwise_relu};
    case OpKind::SigmoidBackward:
      return {dst ? algorithm::eltwise_logistic_use_dst_for_bwd : algorithm::eltwise_logistic};
    case OpKind::SoftPlusBackward: return {algorithm::eltwise_soft_relu, a.f32(Attr::beta)};
    case OpKind::SqrtBackward: return {dst ? algorithm::eltwise_sqrt_use_dst_for_bwd : algorithm::eltwise_sqrt};
    case OpKind::TanhBackward: return {dst ? algorithm::eltwise_tanh_use_dst_for_bwd : algorithm::eltwise_tanh};
    default: return {};
  }
}

algorithm binary_of(OpKind op) {
  switch (op) {
    case OpKind::Add:
    case OpKind::BiasAdd: return algorithm::binary_add;
    case OpKind::Subtract:
    case OpKind::SquaredDifference: return algorithm::binary_sub;
    case OpKind::Multiply: return algorithm::binary_mul;
    case OpKind::Divide: return algorithm::binary_div;
    case OpKind::Maximum: return algorithm::binary_max;
    case OpKind::Minimum: return algorithm::binary_min;
    case OpKind::GreaterEqual: return algorithm::binary_ge;
    default: return algorithm::undef;
  }
}

bool commutes(OpKind op) {
  return op == OpKind::Add || op == OpKind::Multiply || op == OpKind::Maximum || op == OpKind::Minimum;
}

bool is_movement(OpKind op) {
  switch (op) {
    case OpKind::StaticTranspose:
    case OpKind::StaticReshape:
    case OpKind::Reorder:
    case OpKind::TypeCast:
    case OpKind::Quantize:
    case OpKind::Dequantize: return true;
    default: return false;
  }
}

/// With axes of extent 1 in front, or, for one number a channel, around it.
TensorDesc aligned(TensorDesc tensor, const TensorDesc& result, const Problem& problem) {
  const int rank = result.dims.size();
  const bool channels = (problem.op == OpKind::BiasAdd || problem.op == OpKind::PReLU) && tensor.dims.size() == 1 &&
                        rank > 1 && tensor.dims[0] == result.dims[1] && problem.attrs.is(Attr::data_format, "NCX");
  for (int behind = 0; channels && behind < rank - 2; ++behind)
    tensor = onednn::with_unit_axis(std::move(tensor), tensor.dims.size());
  while (tensor.dims.size() < rank) tensor = onednn::with_unit_axis(std::move(tensor), 0);
  return tensor;
}

/// oneDNN's booleans are bytes.
memory::desc bytes_desc(TensorDesc tensor, Dtype as) {
  if (tensor.dtype == Dtype::boolean) tensor.dtype = as;
  return desc_of(tensor);
}

void plan_eltwise(const Problem& p, const Eltwise& e, PrimitiveRun& run) {
  const auto src = desc_of(p.in[0]), dst = desc_of(p.out[0]);
  const dnnl::eltwise_forward::primitive_desc desc(cpu_engine(), prop_kind::forward_inference, e.kind, src, dst,
                                                   e.alpha, e.beta, plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC, run.in(p, 0), src), run.writes(DNNL_ARG_DST, run.out(p, 0), dst)});
}

void plan_gradient(const Problem& p, const Eltwise& e, PrimitiveRun& run) {
  const auto data = desc_of(p.in[0]), diff_dst = desc_of(p.in[1]), diff_src = desc_of(p.out[0]);
  const dnnl::eltwise_forward::primitive_desc hint(cpu_engine(), prop_kind::forward_training, e.kind, data, data,
                                                   e.alpha, e.beta, plain_attr());
  const dnnl::eltwise_backward::primitive_desc desc(cpu_engine(), e.kind, diff_src, diff_dst, data, e.alpha, e.beta,
                                                    hint, plain_attr());
  const int arg = p.attrs.flag_or(Attr::use_dst, false) ? DNNL_ARG_DST : DNNL_ARG_SRC;
  run.add(desc, {run.reads(arg, run.in(p, 0), data), run.reads(DNNL_ARG_DIFF_DST, run.in(p, 1), diff_dst),
                 run.writes(DNNL_ARG_DIFF_SRC, run.out(p, 0), diff_src)});
}

void plan_binary(const Problem& p, algorithm kind, PrimitiveRun& run) {
  const TensorDesc& result = p.out[0];
  int a = 0, b = 1;
  // only the second operand is repeated fast
  if (commutes(p.op) && elements(p.in[0].dims) < elements(p.in[1].dims)) std::swap(a, b);
  const auto first = desc_of(aligned(p.in[static_cast<size_t>(a)], result, p));
  const auto second = desc_of(aligned(p.in[static_cast<size_t>(b)], result, p));
  const auto dst = bytes_desc(result, Dtype::u8);
  dnnl::primitive_attr attr = plain_attr();
  if (p.op == OpKind::SquaredDifference) {
    dnnl::post_ops behind;
    behind.append_eltwise(algorithm::eltwise_square, 0, 0);
    attr.set_post_ops(behind);
  }
  const dnnl::binary::primitive_desc desc(cpu_engine(), kind, first, second, dst, attr);
  run.add(desc, {run.reads(DNNL_ARG_SRC_0, run.in(p, a), first), run.reads(DNNL_ARG_SRC_1, run.in(p, b), second),
                 run.writes(DNNL_ARG_DST, run.out(p, 0), dst)});
}

void plan_select(const Problem& p, PrimitiveRun& run) {
  const TensorDesc& result = p.out[0];
  const auto condition = bytes_desc(aligned(p.in[0], result, p), Dtype::s8);
  const auto then = desc_of(aligned(p.in[1], result, p)), otherwise = desc_of(aligned(p.in[2], result, p));
  const auto dst = desc_of(result);
  const dnnl::binary::primitive_desc desc(cpu_engine(), algorithm::binary_select, then, otherwise, condition, dst,
                                          plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC_0, run.in(p, 1), then), run.reads(DNNL_ARG_SRC_1, run.in(p, 2), otherwise),
                 run.reads(DNNL_ARG_SRC_2, run.in(p, 0), condition), run.writes(DNNL_ARG_DST, run.out(p, 0), dst)});
}

void plan_prelu(const Problem& p, PrimitiveRun& run) {
  const auto src = desc_of(onednn::channel_first(p.in[0], p.attrs));
  const auto slope = desc_of(onednn::channel_first(aligned(p.in[1], p.in[0], p), p.attrs));
  const auto dst = desc_of(onednn::channel_first(p.out[0], p.attrs));
  const dnnl::prelu_forward::primitive_desc desc(cpu_engine(), prop_kind::forward_inference, src, slope, dst,
                                                 plain_attr());
  run.add(desc, {run.reads(DNNL_ARG_SRC, run.in(p, 0), src), run.reads(DNNL_ARG_WEIGHTS, run.in(p, 1), slope),
                 run.writes(DNNL_ARG_DST, run.out(p, 0), dst)});
}

void plan_concat(const Problem& p, PrimitiveRun& run) {
  std::vector<memory::desc> parts;
  for (const TensorDesc& part : p.in) parts.push_back(desc_of(part));
  const auto dst = desc_of(p.out[0]);
  const int axis = *normal_axis(p.attrs.i64(Attr::axis), p.out[0].dims.size());
  const dnnl::concat::primitive_desc desc(cpu_engine(), dst, axis, parts, plain_attr());
  std::vector<Operand> operands = {run.writes(DNNL_ARG_DST, run.out(p, 0), dst)};
  for (size_t k = 0; k < parts.size(); ++k)
    operands.push_back(
        run.reads(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(k), run.in(p, static_cast<int>(k)), parts[k]));
  run.add(desc, std::move(operands));
}

void plan_batch_norm_inference(const Problem& p, PrimitiveRun& run) {
  using dnnl::normalization_flags;
  const auto src = desc_of(onednn::channel_first(p.in[0], p.attrs));
  const auto dst = desc_of(onednn::channel_first(p.out[0], p.attrs));
  const auto flags =
      normalization_flags::use_global_stats | normalization_flags::use_scale | normalization_flags::use_shift;
  const dnnl::batch_normalization_forward::primitive_desc desc(cpu_engine(), prop_kind::forward_inference, src, dst,
                                                               p.attrs.f32(Attr::epsilon), flags, plain_attr());
  run.add(
      desc,
      {run.reads(DNNL_ARG_SRC, run.in(p, 0), src), run.reads(DNNL_ARG_SCALE, run.in(p, 1), desc.weights_desc()),
       run.reads(DNNL_ARG_SHIFT, run.in(p, 2), desc.weights_desc()),
       run.reads(DNNL_ARG_MEAN, run.in(p, 3), desc.mean_desc()),
       run.reads(DNNL_ARG_VARIANCE, run.in(p, 4), desc.variance_desc()), run.writes(DNNL_ARG_DST, run.out(p, 0), dst)});
}

/// A list of numbers that goes with the primitive; the owner keeps it.
template <class Number>
Operand list_of(int arg, const std::vector<Number>& numbers, memory::data_type type) {
  const memory::desc desc({static_cast<int64_t>(numbers.size())}, type, memory::format_tag::a);
  return {arg, {onednn::Place::Of::own, 0, 0, true, numbers.data()}, desc, desc};
}

struct Quantization {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
};

/// Copies, conversions, and scales and zero points on the way. `lists` must live as long as the run.
const char* plan_movement(const Problem& p, PrimitiveRun& run, Quantization& lists) {
  TensorDesc from = p.in[0], to = p.out[0];
  if (p.op == OpKind::StaticTranspose) {
    const Dims order = p.attrs.dims(Attr::order);
    for (int axis = 0; axis < order.size(); ++axis) {
      const int source = *normal_axis(order[axis], order.size());
      from.dims[axis] = p.in[0].dims[source];
      from.strides[axis] = p.in[0].strides[source];
    }
  }
  if (p.op == OpKind::StaticReshape) {
    if (!is_dense(from.dims, from.strides) || !is_dense(to.dims, to.strides)) return "a tensor has gaps";
    from.dims = to.dims;
    from.strides = to.strides;
  }
  if (elements(to.dims) == 0) return "there are no elements";
  const auto src = desc_of(from), dst = desc_of(to);
  dnnl::primitive_attr attr = plain_attr();
  std::vector<Operand> operands = {run.reads(DNNL_ARG_FROM, run.in(p, 0), src),
                                   run.writes(DNNL_ARG_TO, run.out(p, 0), dst)};
  if (p.op == OpKind::Quantize || p.op == OpKind::Dequantize) {
    const int side = p.op == OpKind::Quantize ? DNNL_ARG_TO : DNNL_ARG_FROM;
    const bool channels = p.attrs.is(Attr::qtype, "per_channel");
    if (!channels && !p.attrs.is(Attr::qtype, "per_tensor")) return "scales lie in an unusual way";
    const int axis = channels ? *normal_axis(p.attrs.i64(Attr::axis), to.dims.size()) : 0;
    const int mask = channels ? 1 << axis : 0;
    lists.scales = p.attrs.floats(Attr::scales);
    if (channels && static_cast<int64_t>(lists.scales.size()) != to.dims[axis]) return "scales are those of groups";
    attr.set_scales_mask(side, mask);
    operands.push_back(list_of(DNNL_ARG_ATTR_SCALES | side, lists.scales, memory::data_type::f32));
    if (p.attrs.has(Attr::zps)) {
      for (int64_t zero : p.attrs.ints(Attr::zps)) lists.zero_points.push_back(static_cast<int32_t>(zero));
    }
    if (std::any_of(lists.zero_points.begin(), lists.zero_points.end(), [](int32_t z) { return z != 0; })) {
      if (lists.zero_points.size() > 1) return "reorders of oneDNN 3.7 take one zero point";  // they fail only when run
      attr.set_zero_points_mask(side, 0);
      operands.push_back(list_of(DNNL_ARG_ATTR_ZERO_POINTS | side, lists.zero_points, memory::data_type::s32));
    }
  }
  const dnnl::reorder::primitive_desc desc(cpu_engine(), src, cpu_engine(), dst, attr);
  run.add(desc, std::move(operands));
  return nullptr;
}

/// Null, or why there is no primitive.
const char* plan(const Problem& p, PrimitiveRun& run, Quantization& lists) {
  if (const Eltwise e = eltwise_of(p.op, p.attrs); e.kind != algorithm::undef) return plan_eltwise(p, e, run), nullptr;
  if (const Eltwise e = gradient_of(p.op, p.attrs); e.kind != algorithm::undef)
    return plan_gradient(p, e, run), nullptr;
  if (const algorithm kind = binary_of(p.op); kind != algorithm::undef) return plan_binary(p, kind, run), nullptr;
  if (is_movement(p.op)) return plan_movement(p, run, lists);
  switch (p.op) {
    case OpKind::Select: return plan_select(p, run), nullptr;
    case OpKind::PReLU: return plan_prelu(p, run), nullptr;
    case OpKind::Concat: return plan_concat(p, run), nullptr;
    case OpKind::BatchNormInference: return plan_batch_norm_inference(p, run), nullptr;
    default: return "oneDNN has no primitive";
  }
}

std::optional<Run> spelled(const Problem& problem) {
  PrimitiveRun run;
  auto lists = std::make_shared<Quantization>();
  try {
    if (plan(problem, run, *lists)) return {};
  } catch (const dnnl::error&) {
    return {};
  }
  if (run.slow()) return {};
  Result<Run> made = std::move(run).finish(Target{});
  if (!made.ok()) return {};
  Run whole = std::move(made).value();
  whole.call = [call = std::move(whole.call), lists](const RunArgs& args) { return call(args); };
  return whole;
}

/// The gradient of a bias is a sum.
Problem as_sum(Problem problem) {
  const int rank = problem.in[0].dims.size();
  const int channel = problem.attrs.is(Attr::data_format, "NCX") && rank > 1 ? 1 : rank - 1;
  std::vector<int64_t> axes;
  for (int axis = 0; axis < rank; ++axis)
    if (axis != channel) axes.push_back(axis);
  problem.op = OpKind::ReduceSum;
  problem.attrs.set(Attr::axes, std::move(axes));
  problem.attrs.set(Attr::keep_dims, false);
  return problem;
}

/// Copies in f32 would change nothing: what oneDNN does by plain loops it does by plain loops then, too.
bool is_plain_f32(const Problem& problem) {
  for (const auto* side : {&problem.in, &problem.out})
    for (const TensorDesc& desc : *side)
      if (desc.dtype != Dtype::f32 || !is_dense(desc.dims, desc.strides)) return false;
  return true;
}

/// The bias as a post-operation: oneDNN has only plain loops for one that is no row.
Problem with_bias_behind(Problem problem) {
  problem.in[2] = spread(problem.in[2], problem.out[0].dims);
  problem.ports_in = 2;
  ExprBuilder b(problem.back);
  b.store(0, b.add(b.skeleton(), b.load(2)));
  return problem;
}

}  // namespace

std::optional<Run> one_primitive(const Problem& problem, const Target& target) {
  if (problem.step == StepKind::loop) return spelled(problem);
  const Problem asked = problem.op == OpKind::BiasAddBackward ? as_sum(problem) : problem;
  std::vector<Problem> spellings = {asked};
  if (asked.step == StepKind::matmul && asked.in.size() > 2) spellings.push_back(with_bias_behind(asked));
  for (const Kernel& row : kernels_for(asked.step)) {
    if (std::string_view(row.name).find("onednn") == std::string_view::npos) continue;
    if (std::string_view(row.name).ends_with("_f32") && is_plain_f32(asked)) continue;
    for (const Problem& spelling : spellings) {
      if (row.refuse(spelling, target)) continue;
      Result<Run> run = row.make(spelling, target);
      if (run.ok()) return std::move(run).value();
    }
  }
  return {};
}

int in_place_port(const Problem& p) {
  if (p.step != StepKind::loop || p.in.empty()) return -1;
  const bool gradient = gradient_of(p.op, p.attrs).kind != algorithm::undef;
  if (!gradient && eltwise_of(p.op, p.attrs).kind == algorithm::undef && binary_of(p.op) == algorithm::undef) return -1;
  const int port = gradient ? 1 : 0;
  return p.in[static_cast<size_t>(port)] == p.out[0] ? port : -1;
}

}  // namespace partita::bench
