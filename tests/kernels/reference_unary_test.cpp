// SPDX-License-Identifier: Apache-2.0
// References of element-wise operators of one input: values from the definitions, gradients by finite differences.
#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

using enum OpKind;

Numbers unary(OpKind kind, const AttrList& attrs, const Numbers& x) {
  const Dims dims{static_cast<int64_t>(x.size())};
  return run(kind, attrs, {f32(dims, x)}, {f32(dims)})[0];
}

Numbers backward(OpKind kind, const AttrList& attrs, const Numbers& x, const Numbers& dy) {
  const Dims dims{static_cast<int64_t>(x.size())};
  return run(kind, attrs, {f32(dims, x), f32(dims, dy)}, {f32(dims)})[0];
}

TEST(reference_unary, computes_the_definitions) {
  expect_near(unary(Abs, {}, {-2, 0, 3}), {2, 0, 3});
  expect_near(unary(Clamp, {{Attr::min, -1.f}, {Attr::max, 2.f}}, {-3, -1, 0.5, 2, 5}), {-1, -1, 0.5, 2, 2});
  expect_near(unary(Elu, {{Attr::alpha, 2.f}}, {-1, 0, 3}), {-1.2642411, 0, 3});
  expect_near(unary(Exp, {}, {-1, 0, 2}), {0.36787944, 1, 7.3890561});
  expect_near(unary(HardSigmoid, {{Attr::alpha, 0.25f}, {Attr::beta, 0.5f}}, {-3, -1, 0, 3}), {0, 0.25, 0.5, 1});
  expect_near(unary(HardSwish, {}, {-4, -1, 0, 1, 4}), {0, -1.0 / 3, 0, 2.0 / 3, 4});
  expect_near(unary(LeakyReLU, {{Attr::alpha, 0.1f}}, {-2, 0, 2}), {-0.2, 0, 2});
  expect_near(unary(Log, {}, {1, 2, 0}), {0, 0.69314718, -kInf});
  expect_near(unary(Mish, {}, {-1, 0, 1}), {-0.30340146, 0, 0.86509839});
  expect_near(unary(Reciprocal, {}, {2, -4}), {0.5, -0.25});
  expect_near(unary(ReLU, {}, {-1, 0, 2}), {0, 0, 2});
  expect_near(unary(Round, {}, {0.5, 1.5, 2.5, -0.5, 1.2}), {0, 2, 2, -0.0, 1});
  expect_near(unary(Sigmoid, {}, {-1, 0, 100}), {0.26894142, 0.5, 1});
  expect_near(unary(Sqrt, {}, {4, 2}), {2, 1.41421356});
  expect_near(unary(Square, {}, {-3, 2}), {9, 4});
  expect_near(unary(Tanh, {}, {-1, 0.5}), {-0.76159416, 0.46211716});
}

TEST(reference_unary, gelu_differs_between_its_modes) {
  expect_near(unary(GELU, {{Attr::mode, "gelu_erf"}}, {-1, 1, 3}), {-0.15865525, 0.84134475, 2.9959503});
  expect_near(unary(GELU, {{Attr::mode, "gelu_tanh"}}, {-1, 1, 3}), {-0.15880801, 0.84119199, 2.9963627});
}

TEST(reference_unary, pow_uses_beta_as_the_exponent) {
  expect_near(unary(Pow, {{Attr::beta, 3.f}}, {-2, 2}), {-8, 8});
  expect_near(unary(Pow, {{Attr::beta, -0.5f}}, {4, 0.25}), {0.5, 2});
  expect_near(unary(Pow, {{Attr::beta, 0.f}}, {0, 5}), {1, 1});
}

TEST(reference_unary, softplus_uses_beta_and_does_not_overflow) {
  expect_near(unary(SoftPlus, {{Attr::beta, 1.f}}, {0, 1, 200, -200}), {0.69314718, 1.31326169, 200, 0});
  expect_near(unary(SoftPlus, {{Attr::beta, 2.f}}, {0, 1}), {0.34657359, 1.06346405});
}

TEST(reference_unary, nan_is_not_swallowed) {
  for (OpKind kind : {ReLU, Abs, Exp, Tanh, HardSwish, Sigmoid})
    EXPECT_TRUE(std::isnan(unary(kind, {}, {kNan})[0])) << name_of(kind);
  EXPECT_TRUE(std::isnan(unary(Clamp, {{Attr::min, -1.f}, {Attr::max, 2.f}}, {kNan})[0]));
}

struct Pair {
  OpKind forward, backward;
  AttrList attrs;
  double low, high;
  bool has_use_dst;
};

const Pair kPairs[] = {
    {Abs, AbsBackward, {}, -3, 3, false},
    {Clamp, ClampBackward, {{Attr::min, -1.f}, {Attr::max, 1.5f}}, -3, 3, true},
    {Elu, EluBackward, {{Attr::alpha, 0.7f}}, -3, 3, true},
    {GELU, GELUBackward, {{Attr::mode, "gelu_erf"}}, -3, 3, false},
    {GELU, GELUBackward, {{Attr::mode, "gelu_tanh"}}, -3, 3, false},
    {HardSigmoid, HardSigmoidBackward, {{Attr::alpha, 0.3f}, {Attr::beta, 0.4f}}, -3, 3, false},
    {HardSwish, HardSwishBackward, {}, -5, 5, false},
    {Mish, MishBackward, {}, -5, 5, false},
    {ReLU, ReLUBackward, {}, -3, 3, true},
    {Sigmoid, SigmoidBackward, {}, -4, 4, true},
    {SoftPlus, SoftPlusBackward, {{Attr::beta, 1.7f}}, -4, 4, false},
    {Sqrt, SqrtBackward, {}, 0.5, 4, true},
    {Tanh, TanhBackward, {}, -3, 3, true},
};

TEST(reference_unary, gradients_are_the_slopes_of_the_forward_operators) {
  Random random(11);
  SCOPED_TRACE(random.seed());
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(name_of(pair.backward));
    AttrList attrs = pair.attrs;
    if (pair.has_use_dst) attrs.emplace_back(Attr::use_dst, false);
    const Sample x = random_f32({200}, random, pair.low, pair.high), dy = random_f32({200}, random);
    Numbers above = x.values, below = x.values;
    constexpr double kStep = 1.0 / 1024;
    for (double& v : above) v += kStep;
    for (double& v : below) v -= kStep;
    const Numbers high = unary(pair.forward, pair.attrs, above), low = unary(pair.forward, pair.attrs, below);
    const Numbers got = backward(pair.backward, attrs, x.values, dy.values);
    int away = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      // At a kink the difference quotient lies between the two slopes, so a few points may disagree.
      away += std::abs(got[i] - dy.values[i] * (high[i] - low[i]) / (2 * kStep)) > 2e-3;
    }
    EXPECT_LE(away, 1);
  }
}

TEST(reference_unary, gradients_from_the_result_equal_those_from_the_source) {
  Random random(12);
  SCOPED_TRACE(random.seed());
  for (const Pair& pair : kPairs) {
    if (!pair.has_use_dst) continue;
    SCOPED_TRACE(name_of(pair.backward));
    const Sample x = random_f32({100}, random, pair.low, pair.high), dy = random_f32({100}, random);
    AttrList from_src = pair.attrs, from_dst = pair.attrs;
    from_src.emplace_back(Attr::use_dst, false);
    from_dst.emplace_back(Attr::use_dst, true);
    expect_near(backward(pair.backward, from_dst, unary(pair.forward, pair.attrs, x.values), dy.values),
                backward(pair.backward, from_src, x.values, dy.values), 1e-5);
  }
}

TEST(reference_unary, gradients_vanish_at_the_bounds_of_clamp_and_at_zero) {
  const AttrList clamp{{Attr::min, -1.f}, {Attr::max, 1.f}, {Attr::use_dst, true}};
  EXPECT_EQ(backward(ClampBackward, clamp, {-1, 0, 1}, {5, 5, 5}), (Numbers{0, 5, 0}));
  EXPECT_EQ(backward(AbsBackward, {}, {-1, 0, 1}, {5, 5, 5}), (Numbers{-5, 0, 5}));
  EXPECT_EQ(backward(ReLUBackward, {{Attr::use_dst, true}}, {-1, 0, 1}, {5, 5, 5}), (Numbers{0, 0, 5}));
}

TEST(reference_unary, gradients_have_their_limits_where_the_source_is_infinite) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(backward(MishBackward, {}, {-kInf, kInf}, {5, 5}), (Numbers{0, 5}));
  for (const char* mode : {"gelu_erf", "gelu_tanh"})
    EXPECT_EQ(backward(GELUBackward, {{Attr::mode, mode}}, {-kInf, kInf}, {5, 5}), (Numbers{0, 5})) << mode;
}

TEST(reference_unary, gradients_are_zero_where_nan_is_compared_with_bounds) {
  const AttrList clamp{{Attr::min, -1.f}, {Attr::max, 1.f}, {Attr::use_dst, true}};
  const AttrList line{{Attr::alpha, 0.5f}, {Attr::beta, 0.5f}};
  EXPECT_EQ(backward(ClampBackward, clamp, {kNan, 0}, {5, 5}), (Numbers{0, 5}));
  EXPECT_EQ(backward(AbsBackward, {}, {kNan, 2}, {5, 5}), (Numbers{0, 5}));
  EXPECT_EQ(backward(HardSigmoidBackward, line, {kNan, 0}, {6, 6}), (Numbers{0, 3}));
}

}  // namespace
}  // namespace partita::test
