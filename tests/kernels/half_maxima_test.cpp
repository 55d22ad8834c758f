// SPDX-License-Identifier: Apache-2.0
// Maxima of 16-bit floats that are compared as integers: every kind of number, of either sign, beside every other; rows
// of every length; what is left to others.
#include "kernels/jit/taps/half_maxima.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

Dtype random_half(Random& random) { return random.pick({Dtype::bf16, Dtype::f16}); }

PoolCase random_maximum(Random& random) {
  return {.op = OpKind::MaxPool,
          .windows = random_geometry(random, {.min_axes = 1, .max_axes = 2}),
          .channel_last = true,
          .dtype = random_half(random),
          .batch = random.whole(1, 2),
          .channels = random.pick<int64_t>({1, 3, 20, 31, 32, 33, 64, 96, 130, 600})};
}

TEST(half_maxima, agree_with_the_interpreter) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const Problem p = pool_problem(random_maximum(random));
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    expect_interpreted(p, random, Isa::avx512);
    if (HasFailure()) return;
  }
}

/// Bits of each kind of number: zero, the smallest one, one, the largest one, infinity, NaN with first and last bits.
std::vector<uint16_t> kinds_of(Dtype dtype) {
  const bool bf16 = dtype == Dtype::bf16;
  const auto infinity = static_cast<uint16_t>(bf16 ? 0x7f80 : 0x7c00);
  std::vector<uint16_t> kinds = {0,
                                 1,
                                 static_cast<uint16_t>(bf16 ? 0x3f80 : 0x3c00),
                                 static_cast<uint16_t>(infinity - 1),
                                 infinity,
                                 static_cast<uint16_t>(infinity + 1),
                                 0x7fff};
  for (size_t k = 0, n = kinds.size(); k < n; ++k) kinds.push_back(static_cast<uint16_t>(kinds[k] | 0x8000));
  return kinds;
}

/// Windows of two cells: in channel i * n + k the cells are of kinds i and k.
TEST(half_maxima, are_those_of_every_two_kinds_of_numbers) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    const std::vector<uint16_t> kinds = kinds_of(dtype);
    const size_t n = kinds.size(), channels = n * n;
    Geometry g;
    g.add({.wide = 2, .narrow = 1, .kernel = 2, .stride = 1});
    const Problem p = pool_problem({.op = OpKind::MaxPool,
                                    .windows = g,
                                    .channel_last = true,
                                    .dtype = dtype,
                                    .channels = static_cast<int64_t>(channels)});
    std::vector<uint16_t> bits;
    for (size_t cell = 0; cell < 2; ++cell)
      for (size_t c = 0; c < channels; ++c) bits.push_back(kinds[cell == 0 ? c / n : c % n]);
    std::vector<Buffer> in;
    in.push_back(nan_buffer(p.in[0]));
    std::memcpy(in[0].data(), bits.data(), bits.size() * sizeof(uint16_t));
    const auto got = run_kernel(*generated_row(p.step, Isa::avx512), p, in, 1);
    for (size_t c = 0; c < channels; ++c) {
      const double a = in[0].get(static_cast<int64_t>(c)), b = in[0].get(static_cast<int64_t>(channels + c));
      const double maximum = got[0].get(static_cast<int64_t>(c));
      if (std::isnan(a) || std::isnan(b)) {
        EXPECT_TRUE(std::isnan(maximum)) << a << " and " << b << " give " << maximum;
      } else {
        EXPECT_EQ(maximum, std::max(a, b)) << a << " and " << b;
      }
    }
  }
}

TEST(half_maxima, leave_others_alone) {
  Expr back;
  ExprBuilder b(back);
  b.store(0, b.skeleton());
  const jit::StencilShape shape{.rows = {.length = 64, .out = {{Dtype::bf16, true, 128}}},
                                .fold = Fold::max,
                                .dtype = Dtype::bf16,
                                .taps = {0, 64}};
  const auto fits = [&](const auto& change) {
    jit::StencilShape changed = shape;
    change(changed);
    return jit::HalfMaxima::fits(Isa::avx512, changed, back);
  };
  EXPECT_TRUE(fits([](jit::StencilShape&) {}));
  EXPECT_FALSE(jit::HalfMaxima::fits(Isa::avx2, shape, back));
  EXPECT_FALSE(fits([](jit::StencilShape& s) { s.fold = Fold::sum; }));
  EXPECT_FALSE(fits([](jit::StencilShape& s) { s.rows.streaming = true; }));
  EXPECT_FALSE(fits([](jit::StencilShape& s) { s.dtype = s.rows.out[0].dtype = Dtype::f32; }));
  EXPECT_FALSE(fits([](jit::StencilShape& s) { s.rows.out[0].dtype = Dtype::f32; })) << "a result of another type";
  Expr negated;
  ExprBuilder n(negated);
  n.store(0, n.sub(n.constant(0), n.skeleton()));
  EXPECT_FALSE(jit::HalfMaxima::fits(Isa::avx512, shape, negated)) << "something is computed behind";
}

}  // namespace
}  // namespace partita::test
