// SPDX-License-Identifier: Apache-2.0
// Gradients of averages that repeat their windows' gradients: against the reference, past the caches and in them, with
// something computed in front, and what must not be taken for them.
#include <gtest/gtest.h>

#include "kernels/jit/pool/backward/repeat.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

constexpr Target kTarget{.isa = Isa::avx512, .threads = 2};

Problem repeated_windows(Dtype dtype, Random& random, bool channel_last = false) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t kernel = random.whole(1, 4), narrow = i + 1 < axes ? random.whole(1, 4) : random.whole(2, 40);
    g.add({.wide = narrow * kernel, .narrow = narrow, .kernel = kernel, .stride = kernel});
  }
  return pool_problem({.op = pool_gradient(false),
                       .windows = g,
                       .channel_last = channel_last,
                       .dtype = dtype,
                       .batch = random.whole(1, 3),
                       .channels = random.whole(1, 40),
                       .exclude_pad = random.coin()});
}

Dtype any_type(Random& random) { return random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}); }

std::vector<Buffer> inputs_of(const Problem& p, Random& random) {
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
  return in;
}

TEST(pool_repeat, gradients_are_those_of_the_reference) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  const Kernel& row = *generated_row(StepKind::pool_backward, Isa::avx512);
  int taken = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Problem p = repeated_windows(any_type(random), random);
    SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(p)));
    taken += jit::RepeatPool::fits(p, kTarget);
    const std::vector<Buffer> in = inputs_of(p, random);
    const auto got = run_kernel(row, p, in, 2), expected = reference_results(p, in);
    ASSERT_EQ(difference(got[0], expected[0], tolerance_of(p.out[0].dtype)), "");  // a reciprocal, not a division
    p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    ASSERT_EQ(byte_difference(run_kernel(row, p, in, 2), got), "");
    ASSERT_EQ(byte_difference(run_kernel(row, p, in, 1), got), "");
  }
  EXPECT_GT(taken, 150);
}

TEST(pool_repeat, what_is_in_front_is_computed_once_a_window) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  const Kernel& row = *generated_row(StepKind::pool_backward, Isa::avx512);
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Dtype dtype = any_type(random);
    const Problem alone = repeated_windows(dtype, random);
    Problem p = alone;
    p.ports_in = static_cast<int>(p.in.size());
    p.ports_out = 1;
    p.in.push_back(p.in[0]);
    p.in[0].dtype = random.coin() ? Dtype::f32 : dtype;
    p.out[0].dtype = any_type(random);
    ExprBuilder front(p.front);
    p.front.result = front.mul(front.load(0), front.load(p.ports_in));
    SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(p)));
    ASSERT_EQ(jit::RepeatPool::fits(p, kTarget), jit::RepeatPool::fits(alone, kTarget));
    std::vector<Buffer> in = inputs_of(p, random), product;
    const TensorDesc wide = dense_desc(Dtype::f32, p.in[0].dims);
    product.push_back(nan_buffer(wide));
    for (int64_t i = 0; i < elements(wide.dims); ++i)
      store_from_double(product[0].data(), Dtype::f32, i, in[0].get(i) * in.back().get(i));
    Problem of_product = alone;
    of_product.in[0] = wide;
    of_product.out[0] = dense_desc(Dtype::f32, alone.out[0].dims);
    const auto got = run_kernel(row, p, in, 2), expected = reference_results(of_product, product);
    ASSERT_EQ(difference(got[0], expected[0], tolerance_of(p.out[0].dtype)), "");
  }
}

/// Zeros where elements of other tensors are not positive.
Problem with_choices(Problem p, Random& random) {
  const Dtype dtype = p.out[0].dtype;
  p.ports_in = static_cast<int>(p.in.size());
  p.ports_out = 1;
  ExprBuilder back(p.back);
  auto value = back.apply(ExprOp::cast, back.skeleton(), 0, 0, static_cast<int32_t>(dtype));
  for (int64_t k = random.whole(1, 2); k > 0; --k) {
    p.in.push_back(dense_desc(dtype, p.out[0].dims));
    const auto zero = back.constant(0);
    value = back.select(back.gt(back.load(static_cast<int>(p.in.size()) - 1), zero), value, zero);
  }
  back.store(0, value);
  return p;
}

TEST(pool_repeat, what_is_behind_may_choose) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Problem p = with_choices(repeated_windows(any_type(random), random), random);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    taken += jit::RepeatPool::fits(p, kTarget);
    expect_interpreted(p, random, Isa::avx512);
    expect_same_bits(Isa::avx512, p);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 100);
}

TEST(pool_repeat, leaves_others_alone) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Dtype dtype = any_type(random);
    EXPECT_FALSE(jit::RepeatPool::fits(repeated_windows(dtype, random, true), kTarget)) << "channels last";
    const Problem p = repeated_windows(dtype, random);
    EXPECT_FALSE(jit::RepeatPool::fits(p, {.isa = Isa::avx2, .threads = 2}));
    Problem apart = p;  // gaps between images
    apart.out[0].dims[0] = apart.in[0].dims[0] = 2;
    apart.out[0].strides[0] += 1;
    EXPECT_FALSE(jit::RepeatPool::fits(apart, kTarget)) << "seed " << random.seed();
    Problem stored = p;
    ExprBuilder back(stored.back);
    back.store(0, back.apply(ExprOp::exp, back.skeleton()));
    stored.ports_in = static_cast<int>(stored.in.size());
    stored.ports_out = 1;
    EXPECT_FALSE(jit::RepeatPool::fits(stored, kTarget)) << "an epilogue, seed " << random.seed();
    Problem transposed = with_choices(p, random);
    transposed.in.back().strides[1] += 1;
    EXPECT_FALSE(jit::RepeatPool::fits(transposed, kTarget)) << "what chooses has gaps, seed " << random.seed();
    Problem wider = with_choices(p, random);
    wider.in.back().dtype = dtype == Dtype::f32 ? Dtype::bf16 : Dtype::f32;
    EXPECT_FALSE(jit::RepeatPool::fits(wider, kTarget)) << "what chooses is of another type, seed " << random.seed();
  }
}

}  // namespace
}  // namespace partita::test
