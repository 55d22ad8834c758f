// SPDX-License-Identifier: Apache-2.0
// The interpreter against an evaluation of the same expressions element by element, and collapse() against no collapse.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/loop/collapse.hpp"
#include "kernels/loop/interpreter.hpp"
#include "kernels/ref/reference.hpp"
#include "src/base/dtype.hpp"
#include "src/base/philox.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/activations.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

/// Position in memory of the element at coordinates `at`.
int64_t place_of(const TensorDesc& desc, const Dims& at) {
  int64_t place = desc.offset;
  for (int d = 0; d < at.size(); ++d) place += at[d] * desc.strides[d];
  return place;
}

struct Number {
  float real = 0;
  int32_t whole = 0;
};

float narrowed(float x, Dtype dtype) {
  alignas(8) std::byte cell[8] = {};
  store_from_double(cell, dtype, 0, static_cast<double>(x));
  return static_cast<float>(load_as_double(cell, dtype, 0));
}

int32_t wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(x))); }

/// One instruction on numbers, written from the comments of ExprOp.
Number evaluate(const Instr& in, const Number& a, const Number& b, const Number& c) {
  const float x = a.real, y = b.real;
  const int64_t i = a.whole, j = b.whole;
  const bool nan = std::isnan(x) || std::isnan(y);
  switch (in.op) {
    case ExprOp::constant: return {in.value};
    case ExprOp::add: return {x + y};
    case ExprOp::sub: return {x - y};
    case ExprOp::mul: return {x * y};
    case ExprOp::div: return {x / y};
    case ExprOp::max: return {nan ? NAN : std::fmax(x, y)};
    case ExprOp::min: return {nan ? NAN : std::fmin(x, y)};
    case ExprOp::neg: return {-x};
    case ExprOp::abs: return {std::fabs(x)};
    case ExprOp::square: return {x * x};
    case ExprOp::sqrt: return {std::sqrt(x)};
    case ExprOp::reciprocal: return {1 / x};
    case ExprOp::exp: return {static_cast<float>(std::exp(static_cast<double>(x)))};
    case ExprOp::log: return {static_cast<float>(std::log(static_cast<double>(x)))};
    case ExprOp::tanh: return {static_cast<float>(std::tanh(static_cast<double>(x)))};
    case ExprOp::erf: return {static_cast<float>(std::erf(static_cast<double>(x)))};
    case ExprOp::round: return {std::nearbyint(x)};
    case ExprOp::floor: return {std::floor(x)};
    case ExprOp::sigmoid: return {static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))))};
    case ExprOp::softplus:
      return {static_cast<float>(x > 30 ? static_cast<double>(x) : std::log1p(std::exp(static_cast<double>(x))))};
    case ExprOp::expm1:
    case ExprOp::gelu_erf:
    case ExprOp::gelu_tanh:
    case ExprOp::mish:
    case ExprOp::gelu_erf_slope:
    case ExprOp::gelu_tanh_slope:
    case ExprOp::mish_slope: return {static_cast<float>(activation(in.op, static_cast<long double>(x)))};
    case ExprOp::pow: return {static_cast<float>(std::pow(static_cast<double>(x), static_cast<double>(y)))};
    case ExprOp::ge: return {x >= y ? 1.0f : 0.0f};
    case ExprOp::gt: return {x > y ? 1.0f : 0.0f};
    case ExprOp::eq: return {x == y ? 1.0f : 0.0f};
    case ExprOp::select: return {x != 0 ? y : c.real};
    case ExprOp::fma: return {static_cast<float>(std::fma(x, y, c.real))};
    case ExprOp::add_s32: return {0, wrapped(i + j)};
    case ExprOp::sub_s32: return {0, wrapped(i - j)};
    case ExprOp::mul_s32: return {0, wrapped(i * j)};
    case ExprOp::max_s32: return {0, static_cast<int32_t>(std::max(i, j))};
    case ExprOp::min_s32: return {0, static_cast<int32_t>(std::min(i, j))};
    case ExprOp::ge_s32: return {i >= j ? 1.0f : 0.0f};
    case ExprOp::to_s32:
      return {0, std::isnan(x)
                     ? 0
                     : static_cast<int32_t>(std::clamp(std::nearbyint(static_cast<double>(x)), -0x1p31, 0x1p31 - 1))};
    case ExprOp::to_f32: return {static_cast<float>(i)};
    case ExprOp::cast: return {narrowed(x, static_cast<Dtype>(in.imm))};
    default: return {};
  }
}

/// The random number of the place, whose number is where the operand has it.
float drawn(const Problem& p, const Instr& in, const Dims& at, const Buffer& numbers,
            const std::vector<Number>& value) {
  const auto wide = [&](const Instr& pair) {
    const auto word = [&](uint16_t k) { return static_cast<uint32_t>(value[k].whole); };
    return static_cast<int64_t>(uint64_t{word(pair.b)} << 32 | word(pair.a));
  };
  const auto number = static_cast<int64_t>(
      reinterpret_cast<uintptr_t>(numbers.bytes.data() + place_of(p.in[static_cast<size_t>(in.imm)], at)));
  const auto words = dropout_words(wide(p.back.code[in.a]), wide(p.back.code[in.b]), number / 4);
  return unit_float(words[static_cast<size_t>(number % 4)]);
}

/// Evaluates the loop at one place.
void evaluate_at(const Problem& p, const Dims& at, const std::vector<Buffer>& in, std::vector<Buffer>& out) {
  std::vector<Number> value(p.back.code.size());
  std::vector<bool> whole(p.back.code.size());
  for (size_t k = 0; k < value.size(); ++k) {
    const Instr& i = p.back.code[k];
    Number made;
    bool integer = false;
    if (i.op == ExprOp::load) {
      const TensorDesc& desc = p.in[static_cast<size_t>(i.imm)];
      const double read = load_as_double(in[static_cast<size_t>(i.imm)].data(), desc.dtype, place_of(desc, at));
      integer = desc.dtype == Dtype::s32;
      made = integer ? Number{0, static_cast<int32_t>(read)} : Number{static_cast<float>(read)};
    } else if (i.op == ExprOp::store) {
      const TensorDesc& desc = p.out[static_cast<size_t>(i.imm)];
      const double stored = whole[i.a] ? value[i.a].whole : static_cast<double>(value[i.a].real);
      store_from_double(out[static_cast<size_t>(i.imm)].data(), desc.dtype, place_of(desc, at), stored);
    } else if (i.op == ExprOp::index_s32) {
      made.whole = static_cast<int32_t>(at[i.imm]);
      integer = true;
    } else if (i.op == ExprOp::uniform) {
      made.real = drawn(p, i, at, in[static_cast<size_t>(i.imm)], value);
    } else {
      made = evaluate(i, value[i.a], value[i.b], value[i.c]);
      integer = i.op == ExprOp::to_s32 || (i.op >= ExprOp::add_s32 && i.op <= ExprOp::min_s32);
    }
    value[k] = made;
    whole[k] = integer;
  }
}

void evaluate_loop(const Problem& p, const std::vector<Buffer>& in, std::vector<Buffer>& out) {
  const Dims& space = p.out[0].dims;
  for (int64_t i = 0; i < elements(space); ++i) {
    Dims at(space.size(), 0);
    for (int64_t d = space.size() - 1, rest = i; d >= 0; --d) {
      at[static_cast<int>(d)] = rest % space[static_cast<int>(d)];
      rest /= space[static_cast<int>(d)];
    }
    evaluate_at(p, at, in, out);
  }
}

TensorDesc operand(Dtype dtype, const Dims& space, Random& random) {
  TensorDesc desc = any_desc(dtype, space, random);
  for (int d = 0; d < space.size(); ++d)
    if (random.whole(0, 3) == 0) desc.strides[d] = 0;
  return desc;
}

Dtype any_type(Random& random) {
  return random.pick({Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::f8_e4m3,
                      Dtype::f8_e5m2, Dtype::s4, Dtype::u4, Dtype::boolean, Dtype::s32});
}

/// Every instruction may come; its operands have the kind of number it works on.
Problem random_loop(Random& random) {
  Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
  Dims space;
  for (int64_t rank = random.whole(0, 4); rank > 0; --rank) space.push_back(random.whole(1, 4));
  if (!space.empty() && random.coin()) space.back() = random.whole(250, 520);
  ExprBuilder b(p.back);
  std::vector<Value> reals = {b.constant(0.75f)}, wholes;
  for (int64_t n = random.whole(1, 4); n > 0; --n) {
    p.in.push_back(operand(any_type(random), space, random));
    (p.in.back().dtype == Dtype::s32 ? wholes : reals).push_back(b.load(static_cast<int>(p.in.size()) - 1));
  }
  if (!space.empty()) wholes.push_back(b.index(static_cast<int>(random.whole(0, space.size() - 1))));
  wholes.push_back(b.apply(ExprOp::to_s32, reals[0]));
  auto of = [&](const std::vector<Value>& list) {
    return list[static_cast<size_t>(random.whole(0, static_cast<int64_t>(list.size()) - 1))];
  };
  if (random.coin()) {
    p.in.push_back(operand(Dtype::u8, space, random));
    const auto word = [&] { return b.apply(ExprOp::to_s32, b.constant(static_cast<float>(random.real(-3e9, 3e9)))); };
    const auto pair = [&] { return b.apply(ExprOp::pair_s32, word(), word()); };
    const Value seed = pair(), offset = pair();
    reals.push_back(b.apply(ExprOp::uniform, seed, offset, 0, static_cast<int32_t>(p.in.size()) - 1));
  }
  for (int64_t n = random.whole(1, 12); n > 0; --n) {
    const auto op = static_cast<ExprOp>(random.whole(static_cast<int>(ExprOp::add), static_cast<int>(ExprOp::cast)));
    const bool from_whole = (op >= ExprOp::add_s32 && op <= ExprOp::ge_s32) || op == ExprOp::to_f32;
    const bool to_whole = op == ExprOp::to_s32 || (op >= ExprOp::add_s32 && op <= ExprOp::min_s32);
    const auto& list = from_whole ? wholes : reals;
    const int32_t imm =
        op == ExprOp::cast ? static_cast<int32_t>(random.pick({Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8})) : 0;
    const Value a = of(list), second = of(list), third = of(list);
    const int count = operand_count(op);
    const Value made = b.apply(op, a, count > 1 ? second : Value{0}, count > 2 ? third : Value{0}, imm);
    (to_whole ? wholes : reals).push_back(made);
  }
  for (int64_t n = random.whole(1, 3), o = 0; o < n; ++o) {
    const bool whole = random.whole(0, 2) == 0;
    p.out.push_back(any_desc(whole ? Dtype::s32 : any_type(random), space, random));
    const bool stores_whole = p.out.back().dtype == Dtype::s32;
    b.store(static_cast<int>(o), stores_whole ? wholes.back() : reals.back());
  }
  return p;
}

std::vector<Buffer> results(const Problem& p) {
  std::vector<Buffer> list;
  for (const TensorDesc& desc : p.out) list.push_back(nan_buffer(desc));
  return list;
}

void run_interpreter(const Problem& p, const std::vector<Buffer>& in, std::vector<Buffer>& out) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Buffer& b : in) inputs.push_back(b.bytes.size() ? b.data() : nullptr);
  for (Buffer& b : out) outputs.push_back(b.data());
  const auto run = make_interpreted(p, {});
  ASSERT_TRUE(run.ok()) << run.status().text();
  GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0xff);
  const Status status = run->call({inputs, outputs, scratch.data()});
  EXPECT_TRUE(status.ok()) << status.text();
}

/// Elements may differ by what two implementations of exp and its kin may, rounded to the type and then once more.
void expect_close(const Buffer& got, const Buffer& expected) {
  for (int64_t i = 0; i < elements(got.desc.dims); ++i) {
    const double a = got.get(i), b = expected.get(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::fabs(a - b), 1e-5 * std::max(1.0, std::fabs(b))) << "element " << i << " of " << text_of(got.desc);
  }
}

bool is_exact(ExprOp op) {
  switch (op) {
    case ExprOp::exp:
    case ExprOp::log:
    case ExprOp::tanh:
    case ExprOp::erf:
    case ExprOp::sigmoid:
    case ExprOp::softplus:
    case ExprOp::expm1:
    case ExprOp::gelu_erf:
    case ExprOp::gelu_tanh:
    case ExprOp::mish:
    case ExprOp::gelu_erf_slope:
    case ExprOp::gelu_tanh_slope:
    case ExprOp::mish_slope:
    case ExprOp::pow: return false;
    default: return true;
  }
}

TEST(loop_interpreter, computes_what_each_instruction_says) {
  int exact = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    Random random(seed);
    const Problem p = random_loop(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), " ", text_of(p.back)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-4, 4}));
    std::vector<Buffer> got = results(p), expected = results(p);
    run_interpreter(p, in, got);
    evaluate_loop(p, in, expected);
    // A last bit of an exponential may turn a comparison or a rounding: whole loops of exact instructions must agree.
    const bool all_exact = std::ranges::all_of(p.back.code, [](const Instr& i) { return is_exact(i.op); });
    const bool short_loop = p.back.code.size() <= p.in.size() + 6;
    for (size_t o = 0; o < got.size(); ++o) {
      if (all_exact) {
        EXPECT_EQ(difference(got[o], expected[o], 0), "");
      } else if (short_loop && got[o].desc.dtype == Dtype::f32) {
        expect_close(got[o], expected[o]);
      }
      if (bits_of(got[o].desc.dtype) >= 8) {
        EXPECT_EQ(damage(got[o]), "");
      }
    }
    exact += all_exact;
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(exact, 100);
}

TEST(loop_interpreter, transcendental_instructions_are_accurate) {
  for (ExprOp op : {ExprOp::exp, ExprOp::log, ExprOp::tanh, ExprOp::erf, ExprOp::sigmoid, ExprOp::softplus, ExprOp::pow,
                    ExprOp::expm1, ExprOp::gelu_erf, ExprOp::gelu_tanh, ExprOp::mish, ExprOp::gelu_erf_slope,
                    ExprOp::gelu_tanh_slope, ExprOp::mish_slope}) {
    SCOPED_TRACE(name_of(op));
    Random random(static_cast<uint64_t>(op));
    Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
    p.in = {dense_desc(Dtype::f32, {1000}), dense_desc(Dtype::f32, {1000})};
    p.out = {dense_desc(Dtype::f32, {1000})};
    ExprBuilder b(p.back);
    const Value x = b.load(0), y = b.load(1);
    b.store(0, b.apply(op, x, operand_count(op) > 1 ? y : Value{0}));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in)
      in.push_back(random_buffer(desc, random, {op == ExprOp::pow || op == ExprOp::log ? 0.0 : -6.0, 6}));
    std::vector<Buffer> got = results(p), expected = results(p);
    run_interpreter(p, in, got);
    evaluate_loop(p, in, expected);
    EXPECT_EQ(difference(got[0], expected[0], 2e-6), "");
  }
}

TEST(collapse, changes_no_result) {
  int collapsed_loops = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const Problem p = random_loop(random), less = collapsed(p);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), " -> ", text_of(less), " ", text_of(p.back)));
    EXPECT_EQ(elements(less.out[0].dims), elements(p.out[0].dims));
    collapsed_loops += less.out[0].dims.size() < p.out[0].dims.size();
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-4, 4}));
    std::vector<Buffer> a = results(p), b = results(p);
    evaluate_loop(p, in, a);
    evaluate_loop(less, in, b);
    for (size_t o = 0; o < a.size(); ++o) EXPECT_EQ(difference(b[o], a[o], 0), "");
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(collapsed_loops, 50);
}

/// As a bias lies over [N, C, 1, 1]: whatever strides axes of extent 1 have, they keep no others apart.
TEST(collapse, axes_of_extent_1_are_gone) {
  for (const Dims& strides : {Dims{0, 1, 0, 0}, Dims{0, 1, 1, 1}, Dims{7, 1, 0, 5}}) {
    Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
    p.out = {dense_desc(Dtype::f32, {67, 447, 1, 1})};
    p.in = {p.out[0], {Dtype::f32, p.out[0].dims, strides, 0}};
    ExprBuilder b(p.back);
    b.store(0, b.add(b.load(0), b.load(1)));
    const Problem less = collapsed(p);
    EXPECT_EQ(text_of(less.out[0].dims), text_of(Dims{67, 447}));
    EXPECT_EQ(text_of(less.in[1].strides), text_of(Dims{strides[0], 1}));
  }
}

}  // namespace
}  // namespace partita::test
