// SPDX-License-Identifier: Apache-2.0
// The expressions of element-wise operators against their definitions, and of gradients against numeric derivatives.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "src/ir/verify_op.hpp"
#include "tests/support/activations.hpp"
#include "tests/support/op_text.hpp"
#include "tests/support/random.hpp"

namespace partita::test {
namespace {

double log1p_exp(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

double evaluate(const Instr& i, double a, double b, double c) {
  switch (i.op) {
    case ExprOp::constant: return i.value;
    case ExprOp::add:
    case ExprOp::add_s32: return a + b;
    case ExprOp::sub:
    case ExprOp::sub_s32: return a - b;
    case ExprOp::mul:
    case ExprOp::mul_s32: return a * b;
    case ExprOp::div: return a / b;
    case ExprOp::max:
    case ExprOp::max_s32: return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
    case ExprOp::min:
    case ExprOp::min_s32: return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
    case ExprOp::neg: return -a;
    case ExprOp::abs: return std::fabs(a);
    case ExprOp::square: return a * a;
    case ExprOp::sqrt: return std::sqrt(a);
    case ExprOp::reciprocal: return 1 / a;
    case ExprOp::exp: return std::exp(a);
    case ExprOp::log: return std::log(a);
    case ExprOp::tanh: return std::tanh(a);
    case ExprOp::erf: return std::erf(a);
    case ExprOp::round: return std::nearbyint(a);
    case ExprOp::floor: return std::floor(a);
    case ExprOp::sigmoid: return 1 / (1 + std::exp(-a));
    case ExprOp::softplus: return log1p_exp(a);
    case ExprOp::expm1:
    case ExprOp::gelu_erf:
    case ExprOp::gelu_tanh:
    case ExprOp::mish:
    case ExprOp::gelu_erf_slope:
    case ExprOp::gelu_tanh_slope:
    case ExprOp::mish_slope: return static_cast<double>(activation(i.op, static_cast<long double>(a)));
    case ExprOp::pow: return std::pow(a, b);
    case ExprOp::ge:
    case ExprOp::ge_s32: return a >= b;
    case ExprOp::gt: return a > b;
    case ExprOp::eq: return a == b;
    case ExprOp::select: return a != 0 ? b : c;
    case ExprOp::fma: return a * b + c;
    case ExprOp::index_s32: return 10 + i.imm;
    default: ADD_FAILURE() << "unexpected instruction " << name_of(i.op); return 0;
  }
}

/// The result of an operator's expression for scalar inputs.
double value(OpKind kind, const AttrList& given, const std::vector<double>& in, int rank = 1, bool integer = false) {
  const OpDef& def = op_def(kind);
  Attrs attrs;
  for (const AttrDef& a : def.attrs) attrs.set(a.key, value_of(a.fallback));
  for (const auto& [key, v] : given) attrs.set(key, v);
  Expr expr;
  ExprBuilder builder(expr);
  std::vector<ExprBuilder::Value> loads;
  for (size_t i = 0; i < in.size(); ++i) loads.push_back(builder.load(static_cast<int>(i)));
  const ExprBuilder::Value result =
      def.expression(builder, {.in = loads, .attrs = attrs, .rank = rank, .integer = integer});
  std::vector<double> values;
  for (const Instr& i : expr.code) {
    const auto operand = [&](uint16_t v) { return v < values.size() ? values[v] : 0; };
    values.push_back(i.op == ExprOp::load ? in[static_cast<size_t>(i.imm)]
                                          : evaluate(i, operand(i.a), operand(i.b), operand(i.c)));
  }
  return values[result];
}

using Function = std::function<double(double)>;
struct Unary {
  OpKind kind;
  AttrList attrs;
  Function definition;
  double low = -4;
};

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double clip(double x, double low, double high) { return std::min(std::max(x, low), high); }

const std::vector<Unary>& unary_operators() {
  static const AttrValue tanh_mode = std::string("gelu_tanh");
  static const std::vector<Unary> list = {
      {OpKind::Abs, {}, [](double x) { return std::fabs(x); }},
      {OpKind::Clamp, {{Attr::min, -1.0f}, {Attr::max, 2.0f}}, [](double x) { return clip(x, -1, 2); }},
      {OpKind::Elu, {{Attr::alpha, 0.5f}}, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }},
      {OpKind::Exp, {}, [](double x) { return std::exp(x); }},
      {OpKind::GELU, {}, [](double x) { return x * normal_cdf(x); }},
      {OpKind::GELU,
       {{Attr::mode, tanh_mode}},
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {OpKind::HardSigmoid,
       {{Attr::alpha, 0.25f}, {Attr::beta, 0.5f}},
       [](double x) { return clip(0.25 * x + 0.5, 0, 1); }},
      {OpKind::HardSwish, {}, [](double x) { return x * clip(x + 3, 0, 6) / 6; }},
      {OpKind::LeakyReLU, {{Attr::alpha, 0.1f}}, [](double x) { return x > 0 ? x : 0.1f * x; }},
      {OpKind::Log, {}, [](double x) { return std::log(x); }, 0.1},
      {OpKind::Mish, {}, [](double x) { return x * std::tanh(log1p_exp(x)); }},
      {OpKind::Pow, {{Attr::beta, 1.5f}}, [](double x) { return x * std::sqrt(x); }, 0.1},
      {OpKind::Reciprocal, {}, [](double x) { return 1 / x; }, 0.1},
      {OpKind::ReLU, {}, [](double x) { return x > 0 ? x : 0; }},
      {OpKind::Round, {}, [](double x) { return std::rint(x); }},
      {OpKind::Sigmoid, {}, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {OpKind::SoftPlus, {{Attr::beta, 2.0f}}, [](double x) { return std::log(1 + std::exp(2 * x)) / 2; }},
      {OpKind::Sqrt, {}, [](double x) { return std::sqrt(x); }, 0.1},
      {OpKind::Square, {}, [](double x) { return x * x; }},
      {OpKind::Tanh, {}, [](double x) { return std::tanh(x); }},
  };
  return list;
}

TEST(expressions, of_unary_operators_compute_their_definition) {
  Random random(1);
  for (const Unary& u : unary_operators()) {
    for (int n = 0; n < 50; ++n) {
      const double x = random.real(u.low, 4);
      EXPECT_NEAR(value(u.kind, u.attrs, {x}), u.definition(x), 1e-6)
          << name_of(u.kind) << " at " << x << ", seed " << random.seed();
    }
  }
}

TEST(expressions, cover_every_unary_operator) {
  for (const OpDef* def : all_ops()) {
    if (def->inputs.size() != 1 || !def->expression || def->kind == OpKind::Reorder || def->kind == OpKind::TypeCast ||
        def->kind == OpKind::GenIndex) {
      continue;
    }
    EXPECT_TRUE(std::ranges::any_of(unary_operators(), [&](const Unary& u) { return u.kind == def->kind; }))
        << def->name;
  }
}

struct Gradient {
  OpKind forward, backward;
  bool by_dst = false;
};
constexpr Gradient kGradients[] = {
    {OpKind::Abs, OpKind::AbsBackward},
    {OpKind::Clamp, OpKind::ClampBackward, true},
    {OpKind::Elu, OpKind::EluBackward, true},
    {OpKind::GELU, OpKind::GELUBackward},
    {OpKind::HardSigmoid, OpKind::HardSigmoidBackward},
    {OpKind::HardSwish, OpKind::HardSwishBackward},
    {OpKind::Mish, OpKind::MishBackward},
    {OpKind::ReLU, OpKind::ReLUBackward, true},
    {OpKind::Sigmoid, OpKind::SigmoidBackward, true},
    {OpKind::SoftPlus, OpKind::SoftPlusBackward},
    {OpKind::Sqrt, OpKind::SqrtBackward, true},
    {OpKind::Tanh, OpKind::TanhBackward, true},
};

void expect_gradient(const Gradient& g, const Unary& u, double x, uint64_t seed) {
  const double h = 1e-5, dy = 0.75;
  const double slope = (u.definition(x + h) - u.definition(x - h)) / (2 * h);
  const double second = (u.definition(x + h) - 2 * u.definition(x) + u.definition(x - h)) / h;
  if (std::fabs(second) > 1e-3) return;  // a bend: no derivative here
  AttrList attrs = u.attrs;
  attrs.emplace_back(Attr::use_dst, false);
  EXPECT_NEAR(value(g.backward, attrs, {x, dy}), dy * slope, 1e-5)
      << name_of(g.backward) << " at " << x << ", seed " << seed;
  if (!g.by_dst) return;
  attrs.back().second = true;
  EXPECT_NEAR(value(g.backward, attrs, {u.definition(x), dy}), dy * slope, 1e-5)
      << name_of(g.backward) << " from the result at " << x << ", seed " << seed;
}

TEST(expressions, of_gradients_are_the_derivatives) {
  Random random(2);
  for (const Gradient& g : kGradients) {
    for (const Unary& u : unary_operators()) {
      if (u.kind != g.forward) continue;
      for (int n = 0; n < 50; ++n) expect_gradient(g, u, random.real(u.low, 4), random.seed());
    }
  }
}

TEST(expressions, of_gradients_at_the_bends_follow_onednn) {
  EXPECT_EQ(value(OpKind::AbsBackward, {}, {0, 3}), 0);
  EXPECT_EQ(value(OpKind::AbsBackward, {}, {-2, 3}), -3);
  EXPECT_EQ(value(OpKind::ReLUBackward, {}, {0, 3}), 0);
  const AttrList limits = {{Attr::min, -1.0f}, {Attr::max, 2.0f}};
  EXPECT_EQ(value(OpKind::ClampBackward, limits, {-1, 3}), 0);
  EXPECT_EQ(value(OpKind::ClampBackward, limits, {2, 3}), 0);
  EXPECT_EQ(value(OpKind::ClampBackward, limits, {1.5, 3}), 3);
  EXPECT_EQ(value(OpKind::HardSwishBackward, {}, {3, 2}), 2);
  EXPECT_EQ(value(OpKind::HardSwishBackward, {}, {-3, 2}), 0);
}

TEST(expressions, of_operators_with_several_inputs) {
  EXPECT_EQ(value(OpKind::Add, {}, {5, 3}), 8);
  EXPECT_EQ(value(OpKind::Add, {}, {5, 3}, 1, true), 8);
  EXPECT_EQ(value(OpKind::Subtract, {}, {5, 3}), 2);
  EXPECT_EQ(value(OpKind::Multiply, {}, {5, 3}), 15);
  EXPECT_EQ(value(OpKind::Divide, {}, {6, 3}), 2);
  EXPECT_EQ(value(OpKind::Maximum, {}, {5, 3}), 5);
  EXPECT_EQ(value(OpKind::Minimum, {}, {5, 3}), 3);
  EXPECT_EQ(value(OpKind::SquaredDifference, {}, {1, 4}), 9);
  EXPECT_EQ(value(OpKind::GreaterEqual, {}, {3, 3}), 1);
  EXPECT_EQ(value(OpKind::GreaterEqual, {}, {2, 3}, 1, true), 0);
  EXPECT_EQ(value(OpKind::Select, {}, {1, 4, 5}), 4);
  EXPECT_EQ(value(OpKind::Select, {}, {0, 4, 5}), 5);
  EXPECT_EQ(value(OpKind::PReLU, {}, {-2, 0.5}), -1);
  EXPECT_EQ(value(OpKind::PReLU, {}, {2, 0.5}), 2);
  EXPECT_EQ(value(OpKind::BiasAdd, {}, {2, 0.5}), 2.5);
  EXPECT_EQ(value(OpKind::BatchNormInference, {{Attr::epsilon, 1.0f}}, {7, 3, 2, 5, 8}), 4);
  EXPECT_EQ(value(OpKind::GenIndex, {{Attr::axis, int64_t{-1}}}, {0}, 4), 13);
  EXPECT_EQ(value(OpKind::TypeCast, {}, {7}), 7);
}

}  // namespace
}  // namespace partita::test
