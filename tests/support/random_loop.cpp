// SPDX-License-Identifier: Apache-2.0
// Random loops; entries: random_loop(), random_strided_loop(), expect_generated_rows_agree().
#include "tests/support/random_loop.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/loop/fold_plan.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

/// An operand of the loop's space: dense, or repeated along some axes.
TensorDesc operand(Dtype dtype, const Dims& space, Random& random) {
  TensorDesc desc = dense_desc(dtype, space);
  if (random.whole(0, 2) > 0) return desc;
  Dims kept = space;
  for (int64_t& extent : kept)
    if (random.coin()) extent = 1;
  const Dims strides = dense_desc(dtype, kept).strides;
  for (int d = 0; d < space.size(); ++d) desc.strides[d] = kept[d] == 1 && space[d] != 1 ? 0 : strides[d];
  return desc;
}

/// A random expression over the problem's inputs; comparisons look at inputs alone, so that no rounding can turn them.
void random_expression(Problem& p, Random& random) {
  ExprBuilder b(p.back);
  std::vector<Value> inputs, values;
  for (size_t k = 0; k < p.in.size(); ++k) {
    const Value loaded = b.load(static_cast<int>(k));
    inputs.push_back(p.in[k].dtype == Dtype::s32 ? b.apply(ExprOp::to_f32, loaded) : loaded);
  }
  if (random.whole(0, 3) == 0) inputs.push_back(drawn(p, random));
  values = inputs;
  auto any = [&](const std::vector<Value>& from) {
    return from[static_cast<size_t>(random.whole(0, static_cast<int64_t>(from.size()) - 1))];
  };
  constexpr ExprOp kUnary[] = {ExprOp::neg,
                               ExprOp::abs,
                               ExprOp::square,
                               ExprOp::tanh,
                               ExprOp::erf,
                               ExprOp::exp,
                               ExprOp::log,
                               ExprOp::sigmoid,
                               ExprOp::softplus,
                               ExprOp::sqrt,
                               ExprOp::floor,
                               ExprOp::round,
                               ExprOp::gelu_erf,
                               ExprOp::gelu_tanh,
                               ExprOp::mish,
                               ExprOp::gelu_erf_slope,
                               ExprOp::gelu_tanh_slope,
                               ExprOp::mish_slope,
                               ExprOp::expm1};
  constexpr ExprOp kBinary[] = {ExprOp::add, ExprOp::sub, ExprOp::mul, ExprOp::max, ExprOp::min};
  const int64_t length = random.whole(0, 30);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t choice = random.whole(0, 9);
    if (choice < 3) {
      const ExprOp op = kUnary[random.whole(0, std::size(kUnary) - 1)];
      const bool steps = op == ExprOp::floor || op == ExprOp::round;
      const bool has_pole = op == ExprOp::log || op == ExprOp::sqrt;  // whose neighbours the last bits would tell apart
      const Value argument = steps ? any(inputs) : b.tanh(any(values));
      values.push_back(b.apply(op, has_pole ? b.exp(argument) : argument));
    } else if (choice < 7) {
      values.push_back(b.apply(kBinary[random.whole(0, std::size(kBinary) - 1)], any(values), any(values)));
    } else if (choice == 7) {
      values.push_back(b.select(b.gt(any(inputs), any(inputs)), any(values), any(values)));
    } else if (choice == 8) {
      values.push_back(b.add(any(values), b.constant(static_cast<float>(random.real(-2, 2)))));
    } else {
      // Small, so that it does not enlarge the last bits of a difference.
      const auto place = b.index(static_cast<int>(random.whole(0, p.out[0].dims.size() - 1)));
      values.push_back(b.mul(b.apply(ExprOp::to_f32, place), b.constant(0x1p-12f)));
    }
  }
  for (size_t k = 0; k < p.out.size(); ++k) {
    const bool compares_with_zero = p.out[k].dtype == Dtype::boolean;
    b.store(static_cast<int>(k), compares_with_zero ? any(inputs) : k == 0 ? values.back() : any(values));
  }
}

/// Memory order, gaps and offset at random; inputs may repeat along axes.
TensorDesc strided(Dtype dtype, const Dims& space, Random& random, bool output) {
  if (output || random.whole(0, 2) > 0) return any_desc(dtype, space, random);
  Dims kept = space;
  for (int64_t& extent : kept)
    if (random.coin()) extent = 1;
  TensorDesc desc = any_desc(dtype, kept, random);
  for (int d = 0; d < space.size(); ++d)
    if (kept[d] != space[d]) desc.strides[d] = 0;
  desc.dims = space;
  return desc;
}

/// Axes of the memory in reverse, as between channel-first and channel-last.
TensorDesc reversed(Dtype dtype, const Dims& space) {
  TensorDesc desc{.dtype = dtype, .dims = space, .strides = space};
  int64_t stride = 1;
  for (int d = 0; d < space.size(); ++d) {
    desc.strides[d] = stride;
    stride *= space[d];
  }
  return desc;
}

std::vector<bool> random_axes(int rank, Random& random) {
  std::vector<bool> axes;
  for (int d = 0; d < rank; ++d) axes.push_back(random.coin());
  return axes;
}

Dims random_space(Random& random) {
  switch (random.whole(0, 3)) {
    case 0: return {random.whole(1, 9000)};
    case 1: return {random.whole(1, 300), random.whole(1, 90)};
    case 2: return {random.whole(1, 5), random.whole(1, 40), random.whole(1, 70)};
    default: return {random.whole(1, 4), random.whole(1, 6), random.whole(1, 9), random.whole(1, 20)};
  }
}

/// One unit for integers (a value beside the middle), a few units of the type's precision else.
double unit_of(Dtype dtype, double value) {
  const double size = std::max(1.0, std::fabs(value));
  switch (dtype) {
    case Dtype::f32: return 2e-4 * size;
    case Dtype::bf16: return 2e-2 * size;
    case Dtype::f16: return 3e-3 * size;
    case Dtype::f8_e5m2: return 0.3 * size;
    case Dtype::f8_e4m3: return 0.15 * size;
    case Dtype::boolean: return 0;
    default: return 1 + 2e-4 * size;
  }
}

/// Elements of the loop that each element of what it folds to is made of.
int64_t terms_of(const TensorDesc& folded) {
  int64_t terms = 1;
  for (int d = 0; d < folded.dims.size(); ++d) terms *= folded.strides[d] == 0 ? folded.dims[d] : 1;
  return terms;
}

/// `how`: what of the loop's elements the buffer has.
void expect_close(const Buffer& got, const Buffer& expected, Fold how) {
  // Roundings of sums grow like that, and what they leave of a sum of thousands may be small.
  const auto terms = static_cast<double>(how == Fold::sum ? terms_of(expected.desc) : 1);
  const double often = std::max(1.0, std::sqrt(terms) / 64);
  for (int64_t i = 0; i < elements(expected.desc.dims); ++i) {
    const double g = got.get(i), e = expected.get(i);
    if (g == e || (std::isnan(g) && std::isnan(e))) continue;
    // Beyond this, exponentials have amplified the last bits.
    if (std::fabs(e) > 1e4 && std::fabs(g) > 1e4) continue;
    ASSERT_LE(std::fabs(g - e), often * unit_of(got.desc.dtype, e))
        << "element " << i << " is " << g << ", expected " << e;
  }
}

}  // namespace

TensorDesc folded_desc(const Dims& space, const std::vector<bool>& kept) {
  TensorDesc desc{Dtype::f32, space, Dims(space.size(), 0), 0};
  int64_t stride = 1;
  for (int d = space.size() - 1; d >= 0; --d) {
    if (!kept[static_cast<size_t>(d)]) continue;
    desc.strides[d] = stride;
    stride *= space[d];
  }
  return desc;
}

ExprBuilder::Value drawn(Problem& loop, Random& random) {
  const Dims& space = loop.out[0].dims;
  // Memory of whole quads begins with one, for it ends with a page.
  TensorDesc numbers = random.coin() ? dense_desc(Dtype::u8, space) : scattered_desc(Dtype::u8, space, random);
  if (elements(space) % 4 != 0 || !is_dense(numbers.dims, numbers.strides)) numbers.offset = 4 * numbers.offset + 1;
  loop.in.push_back(numbers);
  ExprBuilder b(loop.back);
  const auto word = [&] { return b.apply(ExprOp::to_s32, b.constant(static_cast<float>(random.real(-3e9, 3e9)))); };
  const auto pair = [&] { return b.apply(ExprOp::pair_s32, word(), word()); };
  const auto seed = pair(), offset = pair();
  return b.apply(ExprOp::uniform, seed, offset, 0, static_cast<int32_t>(loop.in.size()) - 1);
}

Problem random_loop(Random& random) {
  Dims space;
  const int64_t rank = random.whole(1, 4);
  for (int64_t d = 0; d < rank; ++d) space.push_back(d + 1 == rank ? random.whole(1, 70) : random.whole(1, 4));
  if (random.whole(0, 9) == 0) space = {random.whole(2000, 9000)};  // cut into rows
  Problem p;
  p.step = StepKind::loop;
  for (int64_t k = random.whole(1, 4); k > 0; --k)
    p.in.push_back(operand(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::s32,
                                        Dtype::boolean, Dtype::f8_e5m2, Dtype::f8_e4m3, Dtype::s4, Dtype::u4}),
                           space, random));
  for (int64_t k = random.whole(1, 3); k > 0; --k)
    p.out.push_back(dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::s32,
                                            Dtype::boolean, Dtype::f8_e5m2, Dtype::f8_e4m3}),
                               space));
  random_expression(p, random);
  return p;
}

Problem random_strided_loop(Random& random) {
  Dims space;
  for (int64_t rank = random.whole(1, 4); rank > 0; --rank)
    space.push_back(random.whole(0, 5) == 0 ? random.whole(1, 3) : random.whole(1, 40));
  if (space.size() == 4) space[0] = random.whole(1, 3), space[1] = random.whole(1, 9);
  if (random.whole(0, 9) == 0) space = {random.whole(100, 700), random.whole(1, 70)};  // more than a tile
  Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
  const auto type = [&] {
    return random.pick({Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::s32});
  };
  for (int64_t k = random.whole(1, 3); k > 0; --k) {
    const Dtype dtype = random.whole(0, 7) == 0 ? random.pick({Dtype::s4, Dtype::u4, Dtype::f64, Dtype::s64}) : type();
    p.in.push_back(random.coin() ? reversed(dtype, space) : strided(dtype, space, random, false));
  }
  for (int64_t k = random.whole(1, 2); k > 0; --k)
    p.out.push_back(random.whole(0, 3) == 0 ? reversed(type(), space) : strided(type(), space, random, true));
  ExprBuilder b(p.back);
  std::vector<ExprBuilder::Value> values;
  for (size_t k = 0; k < p.in.size(); ++k) {
    const auto loaded = b.load(static_cast<int>(k));
    values.push_back(p.in[k].dtype == Dtype::s32 ? b.apply(ExprOp::to_f32, loaded) : loaded);
  }
  auto sum = values[0];
  for (size_t k = 1; k < values.size(); ++k) sum = b.add(sum, b.mul(values[k], b.constant(0.5f)));
  if (random.whole(0, 3) == 0)
    sum = b.add(sum, b.apply(ExprOp::to_f32, b.index(static_cast<int>(random.whole(0, space.size() - 1)))));
  if (random.whole(0, 3) == 0) sum = b.add(sum, drawn(p, random));
  const bool copy = random.whole(0, 3) == 0;
  for (size_t k = 0; k < p.out.size(); ++k) b.store(static_cast<int>(k), copy || k == 1 ? values[0] : sum);
  return p;
}

namespace {

/// With more factors it depends on their order whether a product leaves the range of f32 on its way.
constexpr int64_t kMostFactors = 60;

}  // namespace

FoldLoop random_fold_loop(Random& random) {
  FoldLoop f;
  Problem& p = f.problem;
  p.step = StepKind::loop;
  // one in five has work for several threads
  const Dims space = random.whole(0, 4) == 0 ? Dims{random.whole(1, 40), random.whole(1, 64), random.whole(30, 64)}
                                             : random_space(random);
  const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
  p.in = {dense_desc(dtype, space), folded_desc(space, random_axes(space.size(), random))};
  p.in[1].dtype = dtype;
  if (random.whole(0, 4) == 0) p.in[0].dtype = random.pick({Dtype::s4, Dtype::u4, Dtype::s8});
  ExprBuilder b(p.back);
  const auto product = b.mul(b.load(0), b.load(1));
  const std::vector<bool> axes = random_axes(space.size(), random);
  if (random.whole(0, 3) == 0) {
    p.out.push_back(dense_desc(Dtype::f32, space));
    f.how.push_back(Fold::none);
  }
  for (int64_t n = random.whole(1, 3); n > 0; --n) {
    p.out.push_back(folded_desc(space, random.coin() ? axes : random_axes(space.size(), random)));
    const Fold how = random.pick({Fold::sum, Fold::sum, Fold::max, Fold::min, Fold::mul});
    f.how.push_back(how == Fold::mul && terms_of(p.out.back()) > kMostFactors ? Fold::sum : how);
  }
  for (size_t k = 0; k < p.out.size(); ++k) b.fold(f.how[k], static_cast<int>(k), product);
  return f;
}

int expect_generated_rows_agree(const Problem& p, Random& random, Closeness closeness, std::string_view rows) {
  SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(p), " ", text_of(p.back)));
  const Range range = closeness == Closeness::equal ? Range{-9, 9} : Range{-2, 2};
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, range));
  const auto table = kernels_for(StepKind::loop);
  const auto expected = run_kernel(table.back(), p, in, 1);
  int compared = 0;
  for (const Kernel& row : table.first(table.size() - 1)) {
    if (std::string_view(row.name).find(rows) == std::string_view::npos) continue;
    if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa})) continue;
    SCOPED_TRACE(row.name);
    const auto got = run_kernel(row, p, in, static_cast<int>(random.whole(1, 3)));
    for (size_t k = 0; k < got.size(); ++k) {
      if (closeness == Closeness::rounded)
        expect_close(got[k], expected[k], fold_of_output(p.back, k));
      else
        EXPECT_EQ(difference(got[k], expected[k], 0), "");
    }
    ++compared;
  }
  return compared;
}

}  // namespace partita::test
