// SPDX-License-Identifier: Apache-2.0
// Gradients of element-wise operators: diff_src from diff_dst and the forward source or result.
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool same_shapes(const OpView& v) { return may_agree(v.in(0), v.in(1)); }

constexpr OpDef gradient(OpKind kind, std::string_view name, std::string_view c_name, std::string_view summary,
                         Expression expression, Few<AttrDef, 11> attrs = {}) {
  return {.kind = kind,
          .name = name,
          .c_name = c_name,
          .summary = summary,
          .inputs = {{"src", "T", "source of the forward operator"}, {"diff_dst", "T", "gradient of its result"}},
          .outputs = {{"diff_src", "T", "gradient of its source"}},
          .attrs = attrs,
          .types = {{"T", kFloats}},
          .checks = {{"gradient_shape", "`diff_dst` must have the shape of `src`", same_shapes}},
          .infer = same_shape,
          .step = StepKind::loop,
          .expression = expression};
}

/// The first input is the forward source, or its result where use_dst is true.
constexpr OpDef gradient_by_either(OpKind kind, std::string_view name, std::string_view c_name,
                                   std::string_view summary, Expression expression, AttrDef first = {},
                                   AttrDef second = {}) {
  OpDef def = gradient(kind, name, c_name, summary, expression);
  def.inputs = {{"src/dst", "T", "source or, with use_dst, result of the forward operator"},
                {"diff_dst", "T", "gradient of its result"}};
  def.checks = {{"gradient_shape", "`diff_dst` must have the shape of `src/dst`", same_shapes}};
  if (!second.text.empty()) {
    def.attrs = {first, second, kUseDst};
  } else if (!first.text.empty()) {
    def.attrs = {first, kUseDst};
  } else {
    def.attrs = {kUseDst};
  }
  return def;
}

bool uses_dst(const ExprInputs& x) { return x.attrs.flag(Attr::use_dst); }

Value abs_backward(ExprBuilder& b, const ExprInputs& x) {
  const Value s = x.in[0], dd = x.in[1], zero = b.constant(0);
  return where_above(b, s, 0, dd, b.select(b.gt(zero, s), b.apply(ExprOp::neg, dd), zero));
}

Value clamp_backward(ExprBuilder& b, const ExprInputs& x) {
  return inside(b, x.in[0], x.attrs.f32(Attr::min), x.attrs.f32(Attr::max), x.in[1]);
}

Value elu_backward(ExprBuilder& b, const ExprInputs& x) {
  const float alpha = x.attrs.f32(Attr::alpha);
  const Value slope = uses_dst(x) ? offset(b, x.in[0], alpha) : scale(b, b.exp(x.in[0]), alpha);
  return where_above(b, x.in[0], 0, x.in[1], b.mul(x.in[1], slope));
}

Value gelu_backward(ExprBuilder& b, const ExprInputs& x) {
  const bool exact = x.attrs.is(Attr::mode, "gelu_erf");
  return b.mul(x.in[1], b.apply(exact ? ExprOp::gelu_erf_slope : ExprOp::gelu_tanh_slope, x.in[0]));
}

Value hard_sigmoid_backward(ExprBuilder& b, const ExprInputs& x) {
  const float alpha = x.attrs.f32(Attr::alpha);
  return inside(b, linear(b, x.in[0], alpha, x.attrs.f32(Attr::beta)), 0, 1, scale(b, x.in[1], alpha));
}

Value hard_swish_backward(ExprBuilder& b, const ExprInputs& x) {
  // The sum is exact near its root.
  const Value s = x.in[0], slope = scale(b, offset(b, b.add(s, s), 3), 1.0f / 6);
  const Value inner = b.select(b.ge(s, b.constant(3)), x.in[1], b.mul(x.in[1], slope));
  return b.select(b.ge(b.constant(-3), s), b.constant(0), inner);
}

Value mish_backward(ExprBuilder& b, const ExprInputs& x) {
  return b.mul(x.in[1], b.apply(ExprOp::mish_slope, x.in[0]));
}

Value relu_backward(ExprBuilder& b, const ExprInputs& x) { return where_above(b, x.in[0], 0, x.in[1], b.constant(0)); }

/// sigmoid(a) * sigmoid(-a), whose factors are accurate where 1 - sigmoid(a) is not.
Value sigmoid_slope(ExprBuilder& b, Value a) {
  return b.mul(b.apply(ExprOp::sigmoid, a), b.apply(ExprOp::sigmoid, b.apply(ExprOp::neg, a)));
}

Value sigmoid_backward(ExprBuilder& b, const ExprInputs& x) {
  const Value slope = uses_dst(x) ? b.mul(x.in[0], one_minus(b, x.in[0])) : sigmoid_slope(b, x.in[0]);
  return b.mul(x.in[1], slope);
}

Value softplus_backward(ExprBuilder& b, const ExprInputs& x) {
  return b.mul(x.in[1], b.apply(ExprOp::sigmoid, scale(b, x.in[0], x.attrs.f32(Attr::beta))));
}

Value sqrt_backward(ExprBuilder& b, const ExprInputs& x) {
  const Value d = uses_dst(x) ? x.in[0] : b.apply(ExprOp::sqrt, x.in[0]);
  return b.div(x.in[1], scale(b, d, 2));
}

Value tanh_backward(ExprBuilder& b, const ExprInputs& x) {
  if (!uses_dst(x)) return b.mul(x.in[1], scale(b, sigmoid_slope(b, scale(b, x.in[0], 2)), 4));
  return b.mul(x.in[1], b.mul(one_minus(b, x.in[0]), offset(b, x.in[0], 1)));
}

constexpr OpDef with_check(OpDef def, CheckDef check) {
  def.checks = {def.checks[0], check};
  return def;
}

}  // namespace

constexpr OpDef kAbsBackward = gradient(OpKind::AbsBackward, "AbsBackward", "abs_backward",
                                        "diff_src = diff_dst times the sign of src", abs_backward);
constexpr OpDef kClampBackward =
    with_check(gradient_by_either(OpKind::ClampBackward, "ClampBackward", "clamp_backward",
                                  "Passes the gradient where min < src < max, 0 elsewhere.", clamp_backward,
                                  required(Attr::min, AttrType::f32, "lower limit"),
                                  required(Attr::max, AttrType::f32, "upper limit")),
               kMinUpToMax);
constexpr OpDef kEluBackward =
    with_check(gradient_by_either(OpKind::EluBackward, "EluBackward", "elu_backward",
                                  "Gradient of Elu, from its source or its result.", elu_backward,
                                  required(Attr::alpha, AttrType::f32, "size of the negative limit, not negative")),
               kAlphaSign);
constexpr OpDef kGELUBackward =
    gradient(OpKind::GELUBackward, "GELUBackward", "gelu_backward", "Gradient of GELU.", gelu_backward,
             {choice(Attr::mode, "gelu_erf", {"gelu_erf", "gelu_tanh"}, "exact by erf, or the approximation by tanh")});
constexpr OpDef kHardSigmoidBackward =
    gradient(OpKind::HardSigmoidBackward, "HardSigmoidBackward", "hard_sigmoid_backward",
             "diff_src = alpha * diff_dst where 0 < alpha * src + beta < 1, 0 elsewhere.", hard_sigmoid_backward,
             {required(Attr::alpha, AttrType::f32, "slope"), required(Attr::beta, AttrType::f32, "value at 0")});
constexpr OpDef kHardSwishBackward = gradient(OpKind::HardSwishBackward, "HardSwishBackward", "hard_swish_backward",
                                              "Gradient of HardSwish.", hard_swish_backward);
constexpr OpDef kMishBackward =
    gradient(OpKind::MishBackward, "MishBackward", "mish_backward", "Gradient of Mish.", mish_backward);
constexpr OpDef kReLUBackward = gradient_by_either(OpKind::ReLUBackward, "ReLUBackward", "relu_backward",
                                                   "diff_src = diff_dst where src > 0, 0 elsewhere.", relu_backward);
constexpr OpDef kSigmoidBackward = gradient_by_either(OpKind::SigmoidBackward, "SigmoidBackward", "sigmoid_backward",
                                                      "diff_src = diff_dst * dst * (1 - dst)", sigmoid_backward);
constexpr OpDef kSoftPlusBackward = gradient(OpKind::SoftPlusBackward, "SoftPlusBackward", "softplus_backward",
                                             "diff_src = diff_dst * sigmoid(beta * src)", softplus_backward,
                                             {real(Attr::beta, 1, "sharpness of the bend")});
constexpr OpDef kSqrtBackward = gradient_by_either(OpKind::SqrtBackward, "SqrtBackward", "sqrt_backward",
                                                   "diff_src = diff_dst / (2 * dst)", sqrt_backward);
constexpr OpDef kTanhBackward = gradient_by_either(OpKind::TanhBackward, "TanhBackward", "tanh_backward",
                                                   "diff_src = diff_dst * (1 - dst * dst)", tanh_backward);

}  // namespace partita
