// SPDX-License-Identifier: Apache-2.0
// Element-wise operators of one input: attributes and expressions.
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

constexpr OpDef unary(OpKind kind, std::string_view name, std::string_view c_name, std::string_view summary,
                      Expression expression, Few<AttrDef, 11> attrs = {}, Few<CheckDef, 10> checks = {}) {
  return {.kind = kind,
          .name = name,
          .c_name = c_name,
          .summary = summary,
          .inputs = {{"src", "T", "values"}},
          .outputs = {{"dst", "T", "results, with the shape of src"}},
          .attrs = attrs,
          .types = {{"T", kFloats}},
          .checks = checks,
          .infer = same_shape,
          .step = StepKind::loop,
          .expression = expression};
}

Value clamp(ExprBuilder& b, const ExprInputs& x) {
  return clip(b, x.in[0], x.attrs.f32(Attr::min), x.attrs.f32(Attr::max));
}

Value elu(ExprBuilder& b, const ExprInputs& x) {
  return where_above(b, x.in[0], 0, x.in[0], scale(b, b.apply(ExprOp::expm1, x.in[0]), x.attrs.f32(Attr::alpha)));
}

Value gelu(ExprBuilder& b, const ExprInputs& x) {
  return b.apply(x.attrs.is(Attr::mode, "gelu_erf") ? ExprOp::gelu_erf : ExprOp::gelu_tanh, x.in[0]);
}

Value hard_sigmoid(ExprBuilder& b, const ExprInputs& x) {
  return clip(b, linear(b, x.in[0], x.attrs.f32(Attr::alpha), x.attrs.f32(Attr::beta)), 0, 1);
}

Value hard_swish(ExprBuilder& b, const ExprInputs& x) {
  return b.mul(x.in[0], scale(b, clip(b, offset(b, x.in[0], 3), 0, 6), 1.0f / 6));
}

Value leaky_relu(ExprBuilder& b, const ExprInputs& x) {
  return where_above(b, x.in[0], 0, x.in[0], scale(b, x.in[0], x.attrs.f32(Attr::alpha)));
}

Value pow(ExprBuilder& b, const ExprInputs& x) {
  return b.apply(ExprOp::pow, x.in[0], b.constant(x.attrs.f32(Attr::beta)));
}

Value relu(ExprBuilder& b, const ExprInputs& x) { return b.max(x.in[0], b.constant(0)); }

Value softplus(ExprBuilder& b, const ExprInputs& x) {
  const float beta = x.attrs.f32(Attr::beta);
  if (beta == 1) return b.apply(ExprOp::softplus, x.in[0]);
  const Value scaled = scale(b, x.in[0], beta);
  if (beta < 0) return b.div(b.apply(ExprOp::softplus, scaled), b.constant(beta));
  // Large sources must not become infinite on the way.
  const Value rest = b.apply(ExprOp::softplus, b.apply(ExprOp::neg, b.apply(ExprOp::abs, scaled)));
  return b.add(b.max(x.in[0], b.constant(0)), b.div(rest, b.constant(beta)));
}

}  // namespace

constexpr OpDef kAbs = unary(OpKind::Abs, "Abs", "abs", "dst = |src|", map1<ExprOp::abs>);
constexpr OpDef kClamp =
    unary(OpKind::Clamp, "Clamp", "clamp", "Limits each value to [min, max].", clamp,
          {required(Attr::min, AttrType::f32, "lower limit"), required(Attr::max, AttrType::f32, "upper limit")},
          {kMinUpToMax});
constexpr OpDef kElu =
    unary(OpKind::Elu, "Elu", "elu", "dst = src where src > 0, alpha * (exp(src) - 1) elsewhere.", elu,
          {required(Attr::alpha, AttrType::f32, "size of the negative limit, not negative")}, {kAlphaSign});
constexpr OpDef kExp = unary(OpKind::Exp, "Exp", "exp", "dst = exp(src)", map1<ExprOp::exp>);
constexpr OpDef kGELU =
    unary(OpKind::GELU, "GELU", "gelu", "Multiplies each value by the normal distribution function at it.", gelu,
          {choice(Attr::mode, "gelu_erf", {"gelu_erf", "gelu_tanh"}, "exact by erf, or the approximation by tanh")});
constexpr OpDef kHardSigmoid = unary(
    OpKind::HardSigmoid, "HardSigmoid", "hard_sigmoid", "dst = alpha * src + beta, limited to [0, 1].", hard_sigmoid,
    {required(Attr::alpha, AttrType::f32, "slope"), required(Attr::beta, AttrType::f32, "value at 0")});
constexpr OpDef kHardSwish =
    unary(OpKind::HardSwish, "HardSwish", "hard_swish", "dst = src * (src / 6 + 0.5, limited to [0, 1]).", hard_swish);
constexpr OpDef kLeakyReLU =
    unary(OpKind::LeakyReLU, "LeakyReLU", "leaky_relu", "dst = src where src > 0, alpha * src elsewhere.", leaky_relu,
          {required(Attr::alpha, AttrType::f32, "slope below 0")});
constexpr OpDef kLog = unary(OpKind::Log, "Log", "log", "dst = natural logarithm of src", map1<ExprOp::log>);
constexpr OpDef kMish = unary(OpKind::Mish, "Mish", "mish", "dst = src * tanh(log(1 + exp(src)))", map1<ExprOp::mish>);
constexpr OpDef kPow = unary(OpKind::Pow, "Pow", "pow", "dst = src to the power of beta", pow,
                             {required(Attr::beta, AttrType::f32, "the exponent")});
constexpr OpDef kReciprocal =
    unary(OpKind::Reciprocal, "Reciprocal", "reciprocal", "dst = 1 / src", map1<ExprOp::reciprocal>);
constexpr OpDef kReLU = unary(OpKind::ReLU, "ReLU", "relu", "dst = max(src, 0)", relu);
constexpr OpDef kRound = unary(OpKind::Round, "Round", "round",
                               "Rounds to the nearest integer, halves to the even one.", map1<ExprOp::round>);
constexpr OpDef kSigmoid =
    unary(OpKind::Sigmoid, "Sigmoid", "sigmoid", "dst = 1 / (1 + exp(-src))", map1<ExprOp::sigmoid>);
constexpr OpDef kSoftPlus = unary(OpKind::SoftPlus, "SoftPlus", "softplus", "dst = log(1 + exp(beta * src)) / beta",
                                  softplus, {real(Attr::beta, 1, "sharpness of the bend")});
constexpr OpDef kSqrt = unary(OpKind::Sqrt, "Sqrt", "sqrt", "dst = square root of src", map1<ExprOp::sqrt>);
constexpr OpDef kSquare = unary(OpKind::Square, "Square", "square", "dst = src * src", map1<ExprOp::square>);
constexpr OpDef kTanh = unary(OpKind::Tanh, "Tanh", "tanh", "dst = hyperbolic tangent of src", map1<ExprOp::tanh>);

}  // namespace partita
