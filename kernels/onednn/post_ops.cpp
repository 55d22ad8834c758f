// SPDX-License-Identifier: Apache-2.0
// Reads expressions backwards from the stored value to the value of the product, and says the way as a list.
#include "kernels/onednn/post_ops.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "src/base/dtype.hpp"

namespace partita::onednn {
namespace {

using dnnl::algorithm;
using Value = uint16_t;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kMaxPostOps = 32;

bool is_rounding_cast(const Instr& in) {
  return in.op == ExprOp::cast && is_floating(static_cast<Dtype>(in.imm)) && bits_of(static_cast<Dtype>(in.imm)) >= 16;
}

/// Reading of one expression.
class Reader {
 public:
  explicit Reader(const Expr& expr) : code_(expr.code), depends_(expr.code.size(), false) {
    for (size_t i = 0; i < code_.size(); ++i) {
      const Instr& in = code_[i];
      const std::array<Value, 3> operands = {in.a, in.b, in.c};
      depends_[i] = in.op == ExprOp::skeleton;
      for (int k = 0; k < operand_count(in.op); ++k)
        depends_[i] = depends_[i] || depends_[operands[static_cast<size_t>(k)]];
    }
  }

  const Instr& at(Value v) const { return code_[v]; }
  bool depends(Value v) const { return depends_[v]; }
  /// Behind what leaves the number as it is, or rounds it to a 16-bit type.
  Value plain(Value v) const {
    while (is_rounding_cast(at(v)) || at(v).op == ExprOp::to_f32) v = at(v).a;
    return v;
  }
  bool same(Value a, Value b) const { return plain(a) == plain(b); }
  bool is(Value v, ExprOp op) const { return at(plain(v)).op == op; }
  Value a(Value v) const { return at(plain(v)).a; }
  Value b(Value v) const { return at(plain(v)).b; }
  Value c(Value v) const { return at(plain(v)).c; }
  std::optional<float> constant(Value v) const {
    return is(v, ExprOp::constant) ? std::optional(at(plain(v)).value) : std::nullopt;
  }
  bool is_constant(Value v, float value) const { return constant(v) == value; }
  std::optional<int> load(Value v) const {
    return is(v, ExprOp::load) ? std::optional(at(plain(v)).imm) : std::nullopt;
  }
  std::optional<Factor> factor(Value v) const {
    if (const auto number = constant(v)) return Factor{*number, -1};
    if (const auto operand = load(v)) return Factor{0, *operand};
    return std::nullopt;
  }
  /// (load - zero_point) * scale, either part optional.
  std::optional<Dequantized> affine(Value v) const {
    Dequantized found;
    if (is(v, ExprOp::mul)) {
      found.scale = factor(b(v));
      if (!found.scale) return std::nullopt;
      v = a(v);
    }
    if (is(v, ExprOp::sub)) {
      found.zero_point = factor(b(v));
      if (!found.zero_point) return std::nullopt;
      v = a(v);
    }
    const auto operand = load(v);
    if (!operand) return std::nullopt;
    found.operand = *operand;
    return found;
  }
  /// k where v = k * x; 1 where v is x.
  std::optional<float> multiple(Value v, Value x) const {
    if (same(v, x)) return 1.0f;
    if (!is(v, ExprOp::mul)) return std::nullopt;
    if (same(a(v), x)) return constant(b(v));
    if (same(b(v), x)) return constant(a(v));
    return std::nullopt;
  }

 private:
  const std::vector<Instr>& code_;
  std::vector<bool> depends_;
};

/// The list under construction, first operation first.
class Chain {
 public:
  explicit Chain(const Reader& reader) : r_(reader) {}

  /// Appends what makes `v` of the product's value.
  bool to(Value v) {
    v = r_.plain(v);
    const Instr& in = r_.at(v);
    if (!r_.depends(v) || ops.size() > kMaxPostOps) return false;
    if (in.op == ExprOp::skeleton) return true;
    if (const auto found = activation(v)) return to(found->first) && add(found->second);
    switch (operand_count(in.op)) {
      case 1: return unary(in);
      case 2: return binary(in);
      default: return false;
    }
  }

  std::vector<PostOp> ops;

  /// A rounding in front of an integer result, and of an integer added to it, is what the store does anyhow.
  void leave_rounding_to_the_store() {
    if (ops.empty()) return;
    const auto is_round = [](const PostOp& p) { return p.algorithm == algorithm::eltwise_round; };
    if (is_round(ops.back())) return ops.pop_back();
    if (ops.size() < 2 || !is_round(ops[ops.size() - 2])) return;
    const PostOp last = ops.back();
    if (last.algorithm != algorithm::eltwise_linear || last.alpha != 1 || last.beta != std::nearbyint(last.beta))
      return;
    ops.resize(ops.size() - 2);
    linear(last.alpha, last.beta);
  }

 private:
  bool add(const PostOp& op) {
    ops.push_back(op);
    return true;
  }

  bool eltwise(algorithm what, float alpha = 0, float beta = 0) { return add({what, alpha, beta, -1}); }

  /// alpha * value + beta, in one with a scaling right before, unless only the product of both is no normal number.
  bool linear(float alpha, float beta) {
    if (!ops.empty() && ops.back().algorithm == algorithm::eltwise_linear) {
      PostOp& last = ops.back();
      if ((last.beta == 0 && std::isnormal(last.alpha * alpha)) || alpha == 1) {
        last = {algorithm::eltwise_linear, last.alpha * alpha, last.beta * alpha + beta, -1};
        return true;
      }
    }
    return eltwise(algorithm::eltwise_linear, alpha, beta);
  }

  bool clip(float low, float high) {
    if (low == 0 && high == kInfinity) return eltwise(algorithm::eltwise_relu);
    if (!ops.empty() && low == -kInfinity) {
      PostOp& last = ops.back();
      if (last.algorithm == algorithm::eltwise_relu && last.alpha == 0 && high >= 0)
        return last = {algorithm::eltwise_clip_v2, 0, high, -1}, true;
      if (last.algorithm == algorithm::eltwise_clip_v2 && last.beta == kInfinity && last.alpha <= high)
        return last.beta = high, true;
    }
    return eltwise(algorithm::eltwise_clip_v2, low, high);
  }

  /// Operations that are written with several instructions on one value: that value and the operation.
  std::optional<std::pair<Value, PostOp>> activation(Value v) const {
    if (r_.is(v, ExprOp::mul))
      for (const auto& [x, gate] : {std::pair{r_.a(v), r_.b(v)}, std::pair{r_.b(v), r_.a(v)}}) {
        if (!r_.depends(x) || !r_.depends(gate)) continue;
        if (r_.same(x, gate)) return std::pair{x, PostOp{algorithm::eltwise_square, 0, 0, -1}};
        if (r_.is(gate, ExprOp::sigmoid))
          if (const auto k = r_.multiple(r_.a(gate), x))
            return std::pair{x, PostOp{algorithm::eltwise_swish, *k, 0, -1}};
        if (is_hard_gate(gate, x)) return std::pair{x, PostOp{algorithm::eltwise_hardswish, 1.0f / 6, 0.5f, -1}};
      }
    if (r_.is(v, ExprOp::select) && r_.is(r_.a(v), ExprOp::gt) && r_.is_constant(r_.b(r_.a(v)), 0)) {
      const Value x = r_.b(v), other = r_.c(v);
      if (!r_.same(r_.a(r_.a(v)), x)) return std::nullopt;
      if (const auto k = r_.multiple(other, x)) return std::pair{x, PostOp{algorithm::eltwise_relu, *k, 0, -1}};
      if (r_.is(other, ExprOp::mul) && r_.is(r_.a(other), ExprOp::expm1) && r_.same(r_.a(r_.a(other)), x))
        if (const auto k = r_.constant(r_.b(other))) return std::pair{x, PostOp{algorithm::eltwise_elu, *k, 0, -1}};
    }
    return softplus(v);
  }

  /// clip(x + 3, 0, 6) / 6
  bool is_hard_gate(Value gate, Value x) const {
    if (!r_.is(gate, ExprOp::mul) || !r_.is_constant(r_.b(gate), 1.0f / 6)) return false;
    const Value upper = r_.a(gate);
    if (!r_.is(upper, ExprOp::min) || !r_.is_constant(r_.b(upper), 6)) return false;
    const Value lower = r_.a(upper);
    if (!r_.is(lower, ExprOp::max) || !r_.is_constant(r_.b(lower), 0)) return false;
    const Value sum = r_.a(lower);
    return r_.is(sum, ExprOp::add) && r_.is_constant(r_.b(sum), 3) && r_.same(r_.a(sum), x);
  }

  /// max(x, 0) + softplus(-|beta x|) / beta
  std::optional<std::pair<Value, PostOp>> softplus(Value v) const {
    if (!r_.is(v, ExprOp::add) || !r_.is(r_.a(v), ExprOp::max) || !r_.is(r_.b(v), ExprOp::div)) return std::nullopt;
    const Value x = r_.a(r_.a(v)), rest = r_.a(r_.b(v));
    const auto beta = r_.constant(r_.b(r_.b(v)));
    if (!r_.is_constant(r_.b(r_.a(v)), 0) || !beta || !r_.is(rest, ExprOp::softplus)) return std::nullopt;
    const Value negative = r_.a(rest);
    if (!r_.is(negative, ExprOp::neg) || !r_.is(r_.a(negative), ExprOp::abs)) return std::nullopt;
    if (r_.multiple(r_.a(r_.a(negative)), x) != beta) return std::nullopt;
    return std::pair{x, PostOp{algorithm::eltwise_soft_relu, *beta, 0, -1}};
  }

  bool unary(const Instr& in) {
    if (!to(in.a)) return false;
    switch (in.op) {
      case ExprOp::neg: return linear(-1, 0);
      case ExprOp::abs: return eltwise(algorithm::eltwise_abs);
      case ExprOp::square: return eltwise(algorithm::eltwise_square);
      case ExprOp::sqrt: return eltwise(algorithm::eltwise_sqrt);
      case ExprOp::reciprocal: return eltwise(algorithm::eltwise_pow, 1, -1);
      case ExprOp::exp: return eltwise(algorithm::eltwise_exp);
      case ExprOp::log: return eltwise(algorithm::eltwise_log);
      case ExprOp::tanh: return eltwise(algorithm::eltwise_tanh);
      case ExprOp::round: return eltwise(algorithm::eltwise_round);
      case ExprOp::sigmoid: return eltwise(algorithm::eltwise_logistic);
      case ExprOp::softplus: return eltwise(algorithm::eltwise_soft_relu, 1);
      case ExprOp::gelu_erf: return eltwise(algorithm::eltwise_gelu_erf);
      case ExprOp::gelu_tanh: return eltwise(algorithm::eltwise_gelu_tanh);
      case ExprOp::mish: return eltwise(algorithm::eltwise_mish);
      case ExprOp::cast: return saturated(static_cast<Dtype>(in.imm));
      default: return false;
    }
  }

  /// What a store to an 8-bit integer leaves of the value.
  bool saturated(Dtype dtype) {
    if (dtype != Dtype::u8 && dtype != Dtype::s8) return false;
    if (ops.empty() || ops.back().algorithm != algorithm::eltwise_round) eltwise(algorithm::eltwise_round);
    return dtype == Dtype::u8 ? clip(0, 255) : clip(-128, 127);
  }

  bool binary(const Instr& in) {
    const bool left = r_.depends(in.a);
    if (left && r_.depends(in.b)) return false;
    const Value operand = left ? in.b : in.a;
    if (!to(left ? in.a : in.b)) return false;
    if (const auto number = r_.constant(operand)) return with_number(in.op, *number, left);
    if (const auto operand_read = r_.affine(operand)) return with_operand(in.op, *operand_read, left);
    return false;
  }

  bool with_number(ExprOp op, float number, bool value_is_left) {
    switch (op) {
      case ExprOp::add: return linear(1, number);
      case ExprOp::sub: return value_is_left ? linear(1, -number) : linear(-1, number);
      case ExprOp::mul: return linear(number, 0);
      case ExprOp::div:
        if (value_is_left) return std::isnormal(1 / number) && linear(1 / number, 0);
        return eltwise(algorithm::eltwise_pow, number, -1);
      case ExprOp::max: return clip(number, kInfinity);
      case ExprOp::min: return clip(-kInfinity, number);
      case ExprOp::pow: return value_is_left && eltwise(algorithm::eltwise_pow, 1, number);
      default: return false;
    }
  }

  /// Where the operand is (x - zero point) * scale of a stored x, the value is brought to the scale of x and back:
  /// value + (x - z) s = ((value / s - z) + x) s.
  bool with_operand(ExprOp op, const Dequantized& operand, bool value_is_left) {
    const bool shifted = operand.scale || operand.zero_point;
    if (shifted && op != ExprOp::add) return false;
    if (!shifted) return with_tensor(op, operand.operand, value_is_left);
    const Factor scale = operand.scale.value_or(Factor{1, -1}), zero = operand.zero_point.value_or(Factor{0, -1});
    if (scale.operand >= 0 || zero.operand >= 0 || scale.value == 0 || !std::isfinite(1 / scale.value)) return false;
    return linear(1 / scale.value, 0) && linear(1, -zero.value) && with_tensor(ExprOp::add, operand.operand, true) &&
           linear(scale.value, 0);
  }

  bool with_tensor(ExprOp op, int operand, bool value_is_left) {
    switch (op) {
      case ExprOp::add: return add({algorithm::binary_add, 0, 0, operand});
      case ExprOp::mul: return add({algorithm::binary_mul, 0, 0, operand});
      case ExprOp::max: return add({algorithm::binary_max, 0, 0, operand});
      case ExprOp::min: return add({algorithm::binary_min, 0, 0, operand});
      case ExprOp::sub:
        if (value_is_left) return add({algorithm::binary_sub, 0, 0, operand});
        return linear(-1, 0) && add({algorithm::binary_add, 0, 0, operand});
      case ExprOp::div:
        if (value_is_left) return add({algorithm::binary_div, 0, 0, operand});
        return eltwise(algorithm::eltwise_pow, 1, -1) && add({algorithm::binary_mul, 0, 0, operand});
      default: return false;
    }
  }

  const Reader& r_;
};

}  // namespace

std::optional<std::vector<PostOp>> post_ops_of(const Problem& problem) {
  if (problem.back.empty()) return std::vector<PostOp>{};
  const Instr* store = nullptr;
  for (const Instr& in : problem.back.code) {
    if (!writes(in.op)) continue;
    if (store || in.op != ExprOp::store) return std::nullopt;
    store = &in;
  }
  if (!store) return std::nullopt;
  const Reader reader(problem.back);
  Chain chain(reader);
  if (!chain.to(store->a)) return std::nullopt;
  if (is_integer(problem.out[0].dtype)) chain.leave_rounding_to_the_store();
  if (chain.ops.size() > kMaxPostOps) return std::nullopt;
  return chain.ops;
}

std::optional<Dequantized> dequantized(const Expr& front) { return Reader(front).affine(front.result); }

}  // namespace partita::onednn
