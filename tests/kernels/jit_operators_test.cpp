// SPDX-License-Identifier: Apache-2.0
// The expressions of element-wise operators, run by generated code in f32, against their definitions in long double:
// random numbers of every exponent and sign. A result may be away by 4 units of the last place.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/activations.hpp"
#include "tests/support/op_text.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

constexpr double kAllowedUlp = 4;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<const Kernel*> generated_rows() {
  std::vector<const Kernel*> rows;
  for (const Kernel& row : kernels_for(StepKind::loop))
    if (row.isa != Isa::any && machine_isa() >= row.isa) rows.push_back(&row);
  return rows;
}

/// Runs an expression over f32 inputs of one length.
std::vector<float> run_row(const Kernel& row, const Expr& expr, const std::vector<std::vector<float>>& in) {
  const auto count = static_cast<int64_t>(in[0].size());
  Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
  p.in.assign(in.size(), dense_desc(Dtype::f32, {count}));
  p.out = {dense_desc(Dtype::f32, {count})};
  p.back = expr;
  std::vector<float> out(in[0].size());
  std::vector<const void*> sources;
  for (const auto& values : in) sources.push_back(values.data());
  void* results[] = {out.data()};
  EXPECT_EQ(row.refuse(p, {.isa = row.isa}), nullptr);
  const Result<Run> run = row.make(p, {.isa = row.isa});
  EXPECT_TRUE(run.ok());
  std::vector<std::byte> scratch(run.ok() ? run->scratch_bytes : 0);
  if (run.ok()) {
    EXPECT_TRUE(run->call({sources, results, scratch.data()}).ok());
  }
  return out;
}

double ulp_between(float found, long double exact) {
  if (std::isnan(exact)) return std::isnan(found) ? 0 : INFINITY;
  if (std::isnan(found)) return INFINITY;
  const long double limit = 0x1p128L, bounded = std::clamp(exact, -limit, limit);
  const long double number = std::isinf(found) ? std::copysign(limit, static_cast<long double>(found)) : found;
  const long double size = std::min(std::fabs(bounded), 0x1.fffffep127L);
  const long double place = size < 0x1p-126L ? 0x1p-149L : std::ldexp(1.0L, std::ilogb(size) - 23);
  return static_cast<double>(std::fabs(number - bounded) / place);
}

using Function = std::function<long double(long double)>;

struct Operator {
  OpKind kind;
  AttrList attrs;
  Function definition;
  /// Where the definition has a root away from 0 an absolute error of this size counts as none.
  double enough = 0;
};

Function of(ExprOp op) {
  return [op](long double x) { return activation(op, x); };
}

std::vector<Operator> operators() {
  const AttrValue by_tanh = std::string("gelu_tanh");
  const auto clip = [](long double x) { return std::min(std::max(x, 0.0L), 6.0L); };
  const AttrList from_src = {{Attr::use_dst, false}};
  return {
      {OpKind::Abs, {}, [](long double x) { return std::fabs(x); }},
      {OpKind::Elu, {{Attr::alpha, 0.5f}}, [](long double x) { return x > 0 ? x : std::expm1(x) / 2; }},
      {OpKind::Exp, {}, [](long double x) { return std::exp(x); }},
      {OpKind::GELU, {}, of(ExprOp::gelu_erf)},
      {OpKind::GELU, {{Attr::mode, by_tanh}}, of(ExprOp::gelu_tanh)},
      {OpKind::HardSwish, {}, [=](long double x) { return x * (clip(x + 3) / 6); }},
      {OpKind::LeakyReLU, {{Attr::alpha, 0.25f}}, [](long double x) { return x > 0 ? x : x / 4; }},
      {OpKind::Log, {}, [](long double x) { return std::log(x); }},
      {OpKind::Mish, {}, of(ExprOp::mish)},
      {OpKind::Reciprocal, {}, [](long double x) { return 1 / x; }},
      {OpKind::ReLU, {}, [](long double x) { return std::max(x, 0.0L); }},
      {OpKind::Round, {}, [](long double x) { return std::nearbyint(x); }},
      {OpKind::Sigmoid, {}, sigmoid_exactly},
      {OpKind::SoftPlus, {}, [](long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }},
      {OpKind::SoftPlus,
       {{Attr::beta, 2.0f}},
       [](long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(2 * x))) / 2; }},
      {OpKind::Sqrt, {}, [](long double x) { return std::sqrt(x); }},
      {OpKind::Square, {}, [](long double x) { return x * x; }},
      {OpKind::Tanh, {}, [](long double x) { return std::tanh(x); }},
      {OpKind::AbsBackward, {}, [](long double x) { return x > 0   ? 1.0L
                                                           : x < 0 ? -1.0L
                                                                   : 0.0L; }},
      {OpKind::EluBackward,
       {{Attr::alpha, 0.5f}, {Attr::use_dst, false}},
       [](long double x) { return x > 0 ? 1.0L : std::exp(x) / 2; }},
      {OpKind::GELUBackward, {}, of(ExprOp::gelu_erf_slope)},
      {OpKind::GELUBackward, {{Attr::mode, by_tanh}}, of(ExprOp::gelu_tanh_slope), 1.5e-7},
      {OpKind::HardSwishBackward, {}, [](long double x) { return x <= -3  ? 0.0L
                                                                 : x >= 3 ? 1.0L
                                                                          : (2 * x + 3) / 6; }},
      {OpKind::MishBackward, {}, of(ExprOp::mish_slope), 1.5e-7},
      {OpKind::SigmoidBackward, from_src, [](long double x) { return sigmoid_exactly(x) * sigmoid_exactly(-x); }},
      {OpKind::SoftPlusBackward, {}, sigmoid_exactly},
      {OpKind::SqrtBackward, from_src, [](long double x) { return 1 / (2 * std::sqrt(x)); }},
      {OpKind::TanhBackward, from_src,
       [](long double x) { return 4 * sigmoid_exactly(2 * x) * sigmoid_exactly(-2 * x); }},
  };
}

/// The operator's expression, stored to output 0.
Expr expression_of(const Operator& o) {
  const OpDef& def = op_def(o.kind);
  Attrs attrs;
  for (const AttrDef& a : def.attrs) attrs.set(a.key, value_of(a.fallback));
  for (const auto& [key, value] : o.attrs) attrs.set(key, value);
  Expr expr;
  ExprBuilder b(expr);
  std::vector<ExprBuilder::Value> loads;
  for (size_t i = 0; i < def.inputs.size(); ++i) loads.push_back(b.load(static_cast<int>(i)));
  b.store(0, def.expression(b, {.in = loads, .attrs = attrs, .rank = 1, .integer = false}));
  return expr;
}

/// Numbers of every exponent and sign, the infinities and NaN.
std::vector<float> every_exponent(Random& random, int each) {
  std::vector<float> list = {0.0f, -0.0f, kInfinity, -kInfinity, kNaN, 1, -1, 3, -3};
  for (uint32_t exponent = 0; exponent < 255; ++exponent)
    // Most functions do what is interesting between 1/1000 and 200.
    for (int i = 0; i < (exponent > 116 && exponent < 135 ? 20 * each : each); ++i)
      for (uint32_t sign : {0u, 1u})
        list.push_back(
            std::bit_cast<float>(sign << 31 | exponent << 23 | static_cast<uint32_t>(random.whole(0, (1 << 23) - 1))));
  return list;
}

TEST(jit_operators, are_accurate_everywhere) {
  Random random(7);
  SCOPED_TRACE(random.seed());
  const std::vector<float> x = every_exponent(random, 25), ones(x.size(), 1.0f);
  for (const Operator& o : operators())
    for (const Kernel* row : generated_rows()) {
      SCOPED_TRACE(str(name_of(o.kind), " by ", row->name));
      const Expr expr = expression_of(o);
      const auto got = op_def(o.kind).inputs.size() == 1 ? run_row(*row, expr, {x}) : run_row(*row, expr, {x, ones});
      double worst = 0;
      size_t at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isinf(x[i]) && o.kind == OpKind::TanhBackward) continue;
        const long double exact = o.definition(static_cast<long double>(x[i]));
        if (std::fabs(static_cast<long double>(got[i]) - exact) < static_cast<long double>(o.enough)) continue;
        const double ulp = ulp_between(got[i], exact);
        if (!(ulp <= worst)) worst = ulp, at = i;
      }
      EXPECT_LE(worst, kAllowedUlp) << "at " << x[at] << ": " << got[at] << ", exactly "
                                    << static_cast<double>(o.definition(static_cast<long double>(x[at])));
    }
}

Expr power_of(std::optional<float> exponent) {
  Expr expr;
  ExprBuilder b(expr);
  const auto x = b.load(0), loaded = b.load(1);
  b.store(0, b.apply(ExprOp::pow, x, exponent ? b.constant(*exponent) : loaded));
  return expr;
}

void expect_powers(const Kernel& row, const Expr& expr, const std::vector<float>& x, const std::vector<float>& y) {
  const auto got = run_row(row, expr, {x, y});
  for (size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    ASSERT_LE(ulp_between(got[i], exact), kAllowedUlp)
        << x[i] << " to the " << y[i] << ": " << got[i] << ", exactly " << static_cast<double>(exact);
    if (exact == 0 || std::fabs(y[i]) == kInfinity) {
      ASSERT_EQ(std::signbit(got[i]), std::signbit(exact)) << x[i] << " to the " << y[i];
    }
  }
}

TEST(jit_operators, powers_are_accurate) {
  Random random(8);
  SCOPED_TRACE(random.seed());
  std::vector<float> x, y;
  for (float base : every_exponent(random, 10))
    for (int k = 0; k < 4; ++k) {
      // Exponents whose results are spread over the range of f32, and whole ones.
      const double size = std::fabs(std::log2(std::fabs(double{base})));
      const double most = std::isfinite(size) && size > 0.01 ? 150 / size : 100;
      const double drawn = random.real(-most, most);
      x.push_back(k == 0 ? std::fabs(base) : base);
      y.push_back(static_cast<float>(k < 2 ? drawn : std::nearbyint(drawn)));
    }
  for (const Kernel* row : generated_rows()) {
    SCOPED_TRACE(row->name);
    expect_powers(*row, power_of({}), x, y);
    if (HasFailure()) return;
  }
}

TEST(jit_operators, powers_of_special_numbers_are_those_of_the_c_library) {
  const std::vector<float> numbers = {0.0f,   -0.0f, 1,         -1,         2,          -2,    0.5f,   -0.5f,
                                      3,      -3,    kInfinity, -kInfinity, kNaN,       1e38f, -1e38f, 1e-38f,
                                      1e-45f, 2.5f,  -2.5f,     16777216.f, 16777217.f, 1e30f, -1e30f, 0x1.fffffep127f,
                                      1e-30f};
  std::vector<float> x, y;
  for (float a : numbers)
    for (float b : numbers) {
      x.push_back(a);
      y.push_back(b);
    }
  for (const Kernel* row : generated_rows()) {
    SCOPED_TRACE(row->name);
    expect_powers(*row, power_of({}), x, y);
    if (HasFailure()) return;
  }
}

TEST(jit_operators, powers_with_known_exponents_are_accurate) {
  Random random(9);
  SCOPED_TRACE(random.seed());
  const std::vector<float> x = every_exponent(random, 5);
  for (float p : {0.0f,  1.0f,  2.0f,  3.0f,  4.0f, 5.0f,  7.0f, 8.0f,     9.0f,  15.0f,     16.0f, -1.0f,
                  -2.0f, -3.0f, -4.0f, -5.0f, 0.5f, -0.5f, 1.5f, 1 / 3.0f, -2.2f, kInfinity, kNaN})
    for (const Kernel* row : generated_rows()) {
      SCOPED_TRACE(str(row->name, ", exponent ", p));
      expect_powers(*row, power_of(p), x, std::vector<float>(x.size(), p));
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace partita::test
