// SPDX-License-Identifier: Apache-2.0
// Generated loops against the interpreter: random expressions, types, shapes, layouts and partial vectors, under every
// instruction set of the machine, on guarded memory.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/loop/interpreter.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_problem.hpp"

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
      values.push_back(b.apply(op, steps ? any(inputs) : b.tanh(any(values))));
    } else if (choice < 7) {
      values.push_back(b.apply(kBinary[random.whole(0, std::size(kBinary) - 1)], any(values), any(values)));
    } else if (choice == 7) {
      values.push_back(b.select(b.gt(any(inputs), any(inputs)), any(values), any(values)));
    } else if (choice == 8) {
      values.push_back(b.add(any(values), b.constant(static_cast<float>(random.real(-2, 2)))));
    } else {
      values.push_back(b.apply(ExprOp::to_f32, b.index(static_cast<int>(random.whole(0, p.out[0].dims.size() - 1)))));
    }
  }
  for (size_t k = 0; k < p.out.size(); ++k) b.store(static_cast<int>(k), k == 0 ? values.back() : any(values));
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
                                        Dtype::boolean, Dtype::f8_e5m2, Dtype::f8_e4m3}),
                           space, random));
  for (int64_t k = random.whole(1, 3); k > 0; --k)
    p.out.push_back(dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8, Dtype::s32,
                                            Dtype::boolean, Dtype::f8_e5m2, Dtype::f8_e4m3}),
                               space));
  random_expression(p, random);
  return p;
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

void expect_equal(const Problem& p, const Buffer& got, const Buffer& expected) {
  for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
    const double g = got.get(i), e = expected.get(i);
    if (g == e || (std::isnan(g) && std::isnan(e))) continue;
    // Beyond this, exponentials have amplified the last bits.
    if (std::fabs(e) > 1e4 && std::fabs(g) > 1e4) continue;
    ASSERT_LE(std::fabs(g - e), unit_of(got.desc.dtype, e)) << "element " << i << " is " << g << ", expected " << e;
  }
}

TEST(jit_rows, loops_agree_with_the_interpreter) {
  constexpr uint64_t kSeeds = 300;
  int compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    const Problem p = random_loop(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p.back)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-2, 2}));
    const auto rows = kernels_for(StepKind::loop);
    const auto expected = run_kernel(rows.back(), p, in, 2);
    for (const Kernel& row : rows.first(rows.size() - 1)) {
      if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa})) continue;
      SCOPED_TRACE(row.name);
      const auto got = run_kernel(row, p, in, 2);
      for (size_t k = 0; k < got.size(); ++k) {
        expect_equal(p, got[k], expected[k]);
        EXPECT_EQ(damage(got[k]), "");
      }
      ++compared;
      if (HasFailure()) return;
    }
  }
  if (!generated_isas().empty()) {
    EXPECT_GE(compared, static_cast<int>(kSeeds) / 2);
  }
}

}  // namespace
}  // namespace partita::test
