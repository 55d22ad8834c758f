// SPDX-License-Identifier: Apache-2.0
// The vector functions against the C library in double precision: a sweep over the f32 bit patterns (every one of them
// with PARTITA_TEST_EVERY_FLOAT=1), special values, and all neighbours of the places where a function changes its ways;
// each with and without the operations that only AVX-512 has.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/jit/code/vector_math.hpp"
#include "kernels/jit/code/vector_pieces.hpp"
#include "tests/support/activations.hpp"

namespace partita::jit {
namespace {

constexpr uint32_t kStride = 5003;
constexpr int32_t kNeighbours = 2048;
constexpr double kAllowedUlp = 4;
/// At most 1.5e-4 of the result's size, and 2^-14 without AVX-512; results below 2^-118 may be lost.
constexpr double allowed_ulp_narrow(bool wide) { return wide ? 1.5e-4 * 0x1p23 : 0x1p9; }
constexpr double kNearRoot = 0.25;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

float as_float(int32_t bits) { return std::bit_cast<float>(bits); }
int32_t as_bits(float value) { return std::bit_cast<int32_t>(value); }
int32_t mask(bool yes) { return yes ? -1 : 0; }
int32_t wrapped(uint32_t value) { return std::bit_cast<int32_t>(value); }

/// x rounded to a number of `bits` bits.
float with_bits(float x, int bits) {
  if (!std::isnormal(x)) return x;
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

float rectified(float x) {
  if (x == -kInfinity) return kNaN;
  return x < 0 ? 0.0f : x;
}

/// One lane of an operation with a single operand.
int32_t unary(const Lane& lane, int32_t a) {
  switch (lane.op) {
    case LaneOp::constant: return lane.imm;
    case LaneOp::sqrt: return as_bits(std::sqrt(as_float(a)));
    case LaneOp::round: return as_bits(std::nearbyint(as_float(a)));
    case LaneOp::floor: return as_bits(std::floor(as_float(a)));
    case LaneOp::fraction: return as_bits(std::isinf(as_float(a)) ? 0.0f : as_float(a) - std::floor(as_float(a)));
    case LaneOp::shl: return wrapped(static_cast<uint32_t>(a) << lane.imm);
    case LaneOp::shr: return wrapped(static_cast<uint32_t>(a) >> lane.imm);
    case LaneOp::sra: return a >> lane.imm;
    case LaneOp::to_int:
      return std::fabs(as_float(a)) < 0x1p31f ? static_cast<int32_t>(std::nearbyint(as_float(a))) : INT32_MIN;
    case LaneOp::to_float: return as_bits(static_cast<float>(a));
    case LaneOp::table: return 0;  // all of it; lookups know which
    case LaneOp::lookup:
    case LaneOp::lookup_in_two:
      return as_bits(looked_up(lane.imm)[static_cast<size_t>(a) % looked_up(lane.imm).size()]);
    case LaneOp::inverse: return as_bits(with_bits(1 / as_float(a), 14));
    case LaneOp::rectified: return as_bits(rectified(as_float(a)));
    default: ADD_FAILURE() << "no meaning for lane operation " << static_cast<int>(lane.op); return 0;
  }
}

float scaled(float x, float power) {
  if (std::isnan(power)) return kNaN;
  if (std::isinf(power)) return x * (power > 0 ? kInfinity : 0);
  return std::ldexp(x, static_cast<int>(std::floor(std::clamp(power, -1000.0f, 1000.0f))));
}

/// One lane of any operation that mathematics is made of.
int32_t evaluated(const Lane& lane, int32_t a, int32_t b, int32_t c) {
  const float x = as_float(a), y = as_float(b), z = as_float(c);
  const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
  switch (lane.op) {
    case LaneOp::add: return as_bits(x + y);
    case LaneOp::sub: return as_bits(x - y);
    case LaneOp::mul: return as_bits(x * y);
    case LaneOp::div: return as_bits(x / y);
    case LaneOp::fma: return as_bits(std::fma(x, y, z));
    case LaneOp::fnma: return as_bits(std::fma(-x, y, z));
    case LaneOp::max: return x > y ? a : b;
    case LaneOp::min: return x < y ? a : b;
    case LaneOp::and_: return a & b;
    case LaneOp::or_: return a | b;
    case LaneOp::xor_: return a ^ b;
    case LaneOp::andnot: return ~a & b;
    case LaneOp::gt: return mask(x > y);
    case LaneOp::ge: return mask(x >= y);
    case LaneOp::eq: return mask(x == y);
    case LaneOp::unordered: return mask(std::isunordered(x, y));
    case LaneOp::select: return (a & b) | (~a & c);
    case LaneOp::iadd: return wrapped(ua + ub);
    case LaneOp::isub: return wrapped(ua - ub);
    case LaneOp::imul: return wrapped(ua * ub);
    case LaneOp::imax: return std::max(a, b);
    case LaneOp::imin: return std::min(a, b);
    case LaneOp::igt: return mask(a > b);
    case LaneOp::scale: return as_bits(scaled(x, y));
    default: return unary(lane, a);
  }
}

/// A program of one input, run for many numbers at a time.
class Program {
 public:
  explicit Program(Value (*function)(LaneBuilder&, Value), Precision precision = Precision::full, bool wide = false) {
    LaneBuilder b(lanes_);
    b.precision = precision;
    b.wide = wide;
    const Value x = b.op(LaneOp::load, 0);
    lanes_.result = function(b, x);
  }

  /// Replaces each number (as bits) by its function value.
  void run(std::vector<int32_t>& x) {
    values_.resize(lanes_.code.size());
    for (size_t i = 0; i < lanes_.code.size(); ++i) {
      const Lane& lane = lanes_.code[i];
      values_[i].resize(x.size());
      if (lane.op == LaneOp::load)
        values_[i] = x;
      else
        for (size_t k = 0; k < x.size(); ++k)
          values_[i][k] = evaluated(lane, values_[lane.a][k], values_[lane.b][k], values_[lane.c][k]);
    }
    x = values_[lanes_.result];
  }

  float operator()(float x) {
    std::vector<int32_t> one = {as_bits(x)};
    run(one);
    return as_float(one[0]);
  }

  /// What costs time: constants and the input wait in registers.
  auto operations() const {
    return std::ranges::count_if(lanes_.code, [](const Lane& lane) { return lane_operands(lane.op) > 0; });
  }

 private:
  Lanes lanes_;
  std::vector<std::vector<int32_t>> values_;
};

/// Distance in units of the last f32 place of the exact value; infinity counts as the number behind the largest.
double ulp_between(float found, double exact) {
  if (std::isnan(exact)) return std::isnan(found) ? 0 : INFINITY;
  const double limit = 0x1p128, bounded = std::clamp(exact, -limit, limit);
  const double number = std::isinf(found) ? std::copysign(limit, found) : found;
  const double size = std::min(std::fabs(bounded), 0x1.fffffep127);
  const double place = size < 0x1p-126 ? 0x1p-149 : std::ldexp(1, std::ilogb(size) - 23);
  const double distance = std::fabs(number - bounded) / place;
  return std::isnan(distance) ? INFINITY : distance;
}

struct Function {
  const char* name;
  Value (*emit)(LaneBuilder&, Value);
  double (*exact)(double);
  long operations;                ///< at most
  long saved;                     ///< of them by the operations of AVX-512
  std::vector<float> boundaries;  ///< where the program or the result changes its ways
  double enough = 0;              ///< an absolute error that counts as none: near a root where the definition cancels
  double enough_narrow = 0;       ///< the same everywhere, in narrow precision
};

std::ostream& operator<<(std::ostream& out, const Function& f) { return out << f.name; }

double exact_sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double exact_softplus(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }

template <ExprOp op>
double exact(double x) {
  return static_cast<double>(test::activation(op, static_cast<long double>(x)));
}

class vector_math : public testing::TestWithParam<Function> {};

struct Worst {
  double ulp = 0;
  float x = 0, found = 0;
};

void check(const Function& f, Program& program, Precision precision, const std::vector<int32_t>& inputs, Worst& worst) {
  std::vector<int32_t> results = inputs;
  program.run(results);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const float x = as_float(inputs[i]), found = as_float(results[i]);
    const double exact = f.exact(x), ulp = ulp_between(found, exact);
    if (f.enough > 0 && std::fabs(exact) < kNearRoot && std::fabs(found - exact) < f.enough && std::fabs(x) < 2)
      continue;
    if (precision == Precision::narrow && std::fabs(exact) < 0x1p-118 && std::fabs(found) < 0x1p-118) continue;
    if (precision == Precision::narrow && std::fabs(found - exact) < f.enough_narrow) continue;
    if (!(ulp <= worst.ulp)) worst = {ulp, x, found};
  }
}

/// The worst case over every `stride`th number and all neighbours of the boundaries.
Worst worst_of(const Function& f, Precision precision, bool wide, uint32_t stride) {
  Program program(f.emit, precision, wide);
  Worst worst;
  std::vector<int32_t> inputs;
  const auto add = [&](uint32_t bits) {
    inputs.push_back(wrapped(bits));
    if (inputs.size() < 4096) return;
    check(f, program, precision, inputs, worst);
    inputs.clear();
  };
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) add(static_cast<uint32_t>(bits));
  std::vector<float> centres = {0, kDenormal, 0x1p-126f, 0x1p-23f, 0.5f, 1, 2, 0x1.fffffep127f, kInfinity, kNaN};
  centres.insert(centres.end(), f.boundaries.begin(), f.boundaries.end());
  for (float centre : centres)
    for (int32_t away = -kNeighbours; away <= kNeighbours; ++away) {
      const uint32_t bits = static_cast<uint32_t>(as_bits(centre)) + static_cast<uint32_t>(away);
      add(bits);
      add(bits ^ 0x80000000u);
    }
  check(f, program, precision, inputs, worst);
  printf("%-13s %2ld operations, at most %.3f ulp: x = %.9g (%a), found %.9g, exact %.12g\n", f.name,
         program.operations(), worst.ulp, worst.x, worst.x, worst.found, f.exact(worst.x));
  return worst;
}

TEST_P(vector_math, is_accurate_over_the_whole_range) {
  const Function& f = GetParam();
  for (bool wide : {false, true}) {
    const Worst worst = worst_of(f, Precision::full, wide, std::getenv("PARTITA_TEST_EVERY_FLOAT") ? 1 : kStride);
    EXPECT_LE(worst.ulp, kAllowedUlp) << wide;
  }
  EXPECT_LE(Program(f.emit).operations(), f.operations);
  EXPECT_LE(Program(f.emit, Precision::full, true).operations(), f.operations - f.saved);
}

TEST_P(vector_math, is_as_accurate_as_16_bit_results_need) {
  const Function& f = GetParam();
  for (bool wide : {false, true}) {
    EXPECT_LE(worst_of(f, Precision::narrow, wide, 8 * kStride).ulp, allowed_ulp_narrow(wide)) << wide;
    EXPECT_LE(Program(f.emit, Precision::narrow, wide).operations(),
              Program(f.emit, Precision::full, wide).operations());
  }
}

TEST_P(vector_math, answers_special_values_as_the_c_library_does) {
  const Function& f = GetParam();
  for (auto [precision, wide] : {std::pair(Precision::full, false),
                                 {Precision::full, true},
                                 {Precision::narrow, false},
                                 {Precision::narrow, true}}) {
    Program program(f.emit, precision, wide);
    for (float x : {0.0f, -0.0f, kInfinity, -kInfinity, kNaN, -kNaN}) {
      const float found = program(x), exact = static_cast<float>(f.exact(x));
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(found)) << x << " gives " << found;
        continue;
      }
      const bool sign_counts = precision == Precision::full || exact != 0 || x == 0;
      EXPECT_TRUE(!sign_counts || std::signbit(found) == std::signbit(exact)) << x << " gives " << found;
      EXPECT_LE(ulp_between(found, exact), precision == Precision::full ? 1 : allowed_ulp_narrow(wide))
          << x << " gives " << found;
    }
  }
}

std::vector<float> times(float factor, std::vector<float> values) {
  for (float& value : values) value *= factor;
  return values;
}

Value exp_of_at_most_0(LaneBuilder& b, Value x) { return exp_not_positive_of(b, b.op(LaneOp::min, b.constant(0), x)); }

const std::vector<float> kSteps = times(0x1.62e430p-2f, {1, 2, 3, 4, 5, 7, 9, 11, 31, 63, 125, 127, 251, 253});

INSTANTIATE_TEST_SUITE_P(
    all, vector_math,
    testing::Values(
        Function{"exp", exp_of, [](double x) { return std::exp(x); }, 16, 4, kSteps},
        Function{"exp_not_positive", exp_of_at_most_0, [](double x) { return std::exp(std::min(x, 0.0)); }, 16, 4,
                 kSteps},
        Function{"log", log_of, [](double x) { return std::log(x); }, 26, 0, {0x1.6a09e6p-1f, 0x1.6a09e6p0f, 4}},
        Function{"tanh", tanh_of, [](double x) { return std::tanh(x); }, 18, 0, times(0.5f, kSteps)},
        Function{"erf", erf_of, [](double x) { return std::erf(x); }, 22, 0, {0.95f, 3.8325f, 4}},
        Function{"sigmoid", sigmoid_of, exact_sigmoid, 18, 4, kSteps},
        Function{"softplus", softplus_of, exact_softplus, 28, 4, kSteps},
        Function{"expm1", expm1_of, exact<ExprOp::expm1>, 18, 0, kSteps},
        Function{"gelu_erf",
                 gelu_erf_of,
                 exact<ExprOp::gelu_erf>,
                 41,
                 7,
                 {0.25f, 0.75f, 4, 5.95f, 13, 14, 18.5f, 18.76f},
                 0,
                 0x1p-25},
        Function{"gelu_tanh", gelu_tanh_of, exact<ExprOp::gelu_tanh>, 50, 5, {0.75f, 5, 5.55f, 10, 12.96f}, 0, 0x1p-25},
        Function{"mish", mish_of, exact<ExprOp::mish>, 25, 2, kSteps},
        Function{"gelu_erf_slope",
                 gelu_erf_slope_of,
                 exact<ExprOp::gelu_erf_slope>,
                 40,
                 4,
                 {0.25f, 0.751791524f, 4, 6.256f, 13, 14, 18.5f, 18.76f},
                 0,
                 0x1p-25},
        Function{"gelu_tanh_slope",
                 gelu_tanh_slope_of,
                 exact<ExprOp::gelu_tanh_slope>,
                 55,
                 6,
                 {5, 5.8f, 10, 12.96f},
                 1.5e-7,
                 0x1p-25},
        Function{"mish_slope", mish_slope_of, exact<ExprOp::mish_slope>, 36, 6, kSteps, 1.5e-7}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(vector_math_limits, no_probability_leaves_its_range) {
  Program erf(erf_of), tanh(tanh_of), sigmoid(sigmoid_of);
  for (float x = 0.25f; x < 200; x *= 1.0009f) {
    for (float at : {x, -x}) {
      EXPECT_LE(std::fabs(erf(at)), 1) << at;
      EXPECT_LE(std::fabs(tanh(at)), 1) << at;
      EXPECT_LE(sigmoid(at), 1) << at;
      EXPECT_GE(sigmoid(at), 0) << at;
    }
  }
  for (float x : {4.0f, 10.0f, 1e30f}) {
    EXPECT_EQ(erf(x), 1) << x;
    EXPECT_EQ(erf(-x), -1) << x;
  }
}

TEST(lane_builder, makes_equal_operations_once_and_every_store) {
  Lanes lanes;
  LaneBuilder b(lanes);
  const Value x = b.op(LaneOp::load, 0), one = b.constant(1);
  EXPECT_EQ(b.add(x, one), b.add(x, one));
  EXPECT_NE(b.add(x, one), b.add(one, x));
  EXPECT_NE(b.constant(0.0f), b.constant(-0.0f));
  EXPECT_NE(b.emit({LaneOp::store, x}), b.emit({LaneOp::store, x}));
  EXPECT_EQ(lanes.code.size(), 8u);
}

}  // namespace
}  // namespace partita::jit
