// SPDX-License-Identifier: Apache-2.0
// Products with what stands around them: attributes and arguments of the primitives.
#include <algorithm>

#include "kernels/onednn/post_ops.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;

bool is_narrow_integer(Dtype dtype) { return dtype == Dtype::s8 || dtype == Dtype::u8; }

/// Elsewhere oneDNN adds products of 8-bit integers in pairs of 16 bits, which saturate, or halves weights before.
bool sums_integers_exactly() { return has_isa(dnnl::cpu_isa::avx512_core_vnni) || has_isa(dnnl::cpu_isa::avx2_vnni); }

/// One number for all places.
bool is_single(const TensorDesc& desc) {
  for (int d = 0; d < desc.dims.size(); ++d)
    if (desc.dims[d] > 1 && desc.strides[d] != 0) return false;
  return true;
}

/// A number that u8 or s8 have; with others, which are legal, sums would leave s32.
bool is_zero_point(float value) { return value >= -128 && value <= 255; }

/// Replaces a port by the tensor its front reads; false where the front is not for a primitive.
bool replace(const Problem& problem, const Expr& front, std::optional<Dequantized>& meaning, int& at,
             TensorDesc& port) {
  if (front.empty()) return true;
  const Dtype made = port.dtype;
  meaning = dequantized(front);
  if (!meaning) return false;
  at = meaning->operand;
  const TensorDesc& read = problem.in[static_cast<size_t>(at)];
  if (read.dims != port.dims) return false;
  port = read;
  if (std::find(read.strides.begin(), read.strides.end(), 0) != read.strides.end()) return false;
  if (is_narrow_integer(read.dtype)) return true;
  // a conversion to a wider type changes no product; bf16 and f16 are as wide, but neither holds the other's numbers
  const bool is_exact = read.dtype == made || bits_of(read.dtype) < bits_of(made);
  return is_floating(read.dtype) && is_exact && !meaning->scale && !meaning->zero_point;
}

/// Functions with an exponential or a logarithm: primitives compute them on a few rows at a time, behind the product,
/// where they take up to three times as long as in a loop that reads the result from the caches. Integers stay with the
/// primitive: what a loop would read is four times as large as what it stores. So does erf of f32, which takes as long.
bool is_faster_in_a_loop(dnnl::algorithm function, Dtype dst) {
  using dnnl::algorithm;
  if (!is_floating(dst)) return false;
  switch (function) {
    case algorithm::eltwise_exp:
    case algorithm::eltwise_log:
    case algorithm::eltwise_tanh:
    case algorithm::eltwise_logistic:
    case algorithm::eltwise_swish:
    case algorithm::eltwise_mish:
    case algorithm::eltwise_soft_relu:
    case algorithm::eltwise_elu:
    case algorithm::eltwise_gelu_tanh: return true;
    case algorithm::eltwise_gelu_erf: return dst != Dtype::f32;
    default: return false;
  }
}

}  // namespace

bool leaves_to_loops(const Product& product, const Target& target) {
  return PARTITA_JIT && target.isa != Isa::any && !product.post_ops.empty();
}

const char* slower_than_loops(const Problem& problem, const Product& product, const Target& target) {
  const auto slow = [&](const PostOp& op) { return is_faster_in_a_loop(op.algorithm, problem.out[0].dtype); };
  if (!leaves_to_loops(product, target) || std::ranges::none_of(product.post_ops, slow)) return nullptr;
  return "a loop behind the product computes its functions faster";
}

const char* read_product(const Problem& problem, Product& product) {
  product.src = problem.in[0];
  product.weights = problem.in[1];
  product.has_bias = problem.in_ports() > 2;
  if (!replace(problem, problem.front, product.src_front, product.src_at, product.src) ||
      !replace(problem, problem.weights_front, product.weights_front, product.weights_at, product.weights))
    return "what stands in front is no dequantization that oneDNN does";
  if (is_narrow_integer(product.src.dtype) && is_narrow_integer(product.weights.dtype) && !sums_integers_exactly())
    return "without VNNI oneDNN's products of 8-bit integers saturate";
  auto ops = post_ops_of(problem);
  if (!ops) return "oneDNN has no post-operations for what stands behind";
  product.post_ops = std::move(*ops);
  for (const PostOp& op : product.post_ops) {
    if (op.operand < 0) continue;
    const Dtype dtype = problem.in[static_cast<size_t>(op.operand)].dtype;
    if (!is_floating(dtype) && !is_narrow_integer(dtype)) return "oneDNN has no post-operation for the operand's type";
  }
  return nullptr;
}

TensorDesc with_unit_axes(TensorDesc operand) {
  int64_t stride = 1;
  for (int d = operand.dims.size() - 1; d >= 0; --d) {
    if (operand.strides[d] == 0) {
      operand.dims[d] = 1;
      operand.strides[d] = stride;
    } else {
      stride = std::max(stride, operand.dims[d] * operand.strides[d]);
    }
  }
  return operand;
}

memory::desc Around::wanted(size_t k) const { return desc_of(compact_like(dst_, operands_[k])); }

bool Around::describe(dnnl::primitive_attr& attr, int arg, const std::optional<Dequantized>& front) const {
  if (!front) return true;
  if (front->zero_point) {
    if (front->zero_point->operand >= 0) {
      const TensorDesc& zero = problem_.in[static_cast<size_t>(front->zero_point->operand)];
      if (zero.dtype != Dtype::s32 || !is_single(zero)) return false;
    } else if (!is_zero_point(front->zero_point->value)) {
      return false;
    }
    attr.set_zero_points_mask(arg, 0);
  }
  if (!front->scale) return true;
  int mask = 0;
  if (front->scale->operand >= 0) {
    const TensorDesc& scale = problem_.in[static_cast<size_t>(front->scale->operand)];
    if (scale.dtype != Dtype::f32) return false;
    if (!is_single(scale)) {
      if (arg != DNNL_ARG_WEIGHTS || scale.dims[scales_.axis] != scales_.entries) return false;
      for (int d = 0; d < scale.dims.size(); ++d)
        if (scale.dims[d] > 1 && scale.strides[d] != (d == scales_.axis ? 1 : 0)) return false;
      mask = scales_.mask;
    }
  }
  attr.set_scales_mask(arg, mask);
  return true;
}

bool Around::describe(dnnl::primitive_attr& attr, bool free) const {
  if (!describe(attr, DNNL_ARG_SRC, product_.src_front) || !describe(attr, DNNL_ARG_WEIGHTS, product_.weights_front))
    return false;
  dnnl::post_ops list;
  size_t k = 0;
  for (const PostOp& op : product_.post_ops) {
    if (op.operand < 0) {
      list.append_eltwise(op.algorithm, op.alpha, op.beta);
      continue;
    }
    const memory::desc desc = wanted(k);
    const bool whole = operands_[k].dims == dst_.dims;
    list.append_binary(op.algorithm, free && whole ? any_layout(desc) : desc);
    ++k;
  }
  attr.set_post_ops(list);
  return true;
}

void Around::argument(PrimitiveRun& run, int arg, const Factor& factor, bool integer,
                      std::vector<Operand>& list) const {
  using type = memory::data_type;
  int64_t entries = 1;
  Place place;
  if (factor.operand >= 0) {
    const TensorDesc& desc = problem_.in[static_cast<size_t>(factor.operand)];
    place = run.in(problem_, factor.operand);
    for (int d = 0; d < desc.dims.size(); ++d)
      if (desc.dims[d] > 1 && desc.strides[d] != 0) entries *= desc.dims[d];
  } else if (integer) {
    place = run.own(static_cast<int32_t>(factor.value));
  } else {
    place = run.own(factor.value);
  }
  list.push_back(run.reads(arg, place, {{entries}, integer ? type::s32 : type::f32, memory::format_tag::a}));
}

void Around::arguments(const dnnl::primitive_desc_base& desc, PrimitiveRun& run, std::vector<Operand>& list) const {
  for (const auto& [arg, front] :
       {std::pair{DNNL_ARG_SRC, &product_.src_front}, std::pair{DNNL_ARG_WEIGHTS, &product_.weights_front}}) {
    if (!*front) continue;
    if ((*front)->scale) argument(run, DNNL_ARG_ATTR_SCALES | arg, *(*front)->scale, false, list);
    if ((*front)->zero_point) argument(run, DNNL_ARG_ATTR_ZERO_POINTS | arg, *(*front)->zero_point, true, list);
  }
  size_t k = 0;
  for (size_t i = 0; i < product_.post_ops.size(); ++i) {
    const int operand = product_.post_ops[i].operand;
    if (operand < 0) continue;
    const int arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
    TensorDesc have = operands_[k];
    const memory::desc want = desc.query_md(dnnl::query::exec_arg_md, arg);
    list.push_back(run.reads(arg, run.in(problem_, operand), desc_of(have), want));
    ++k;
  }
}

}  // namespace partita::onednn
