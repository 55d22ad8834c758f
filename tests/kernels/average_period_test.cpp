// SPDX-License-Identifier: Apache-2.0
// Gradients of channel-last averages that are made one row of periods after the other: random windows that lie apart
// and overlap, hang over, or leave cells out; divisors, types and expressions against the interpreter; the bits of the
// other layout; and what must not be taken for them.
#include "kernels/jit/pool/average/rows.hpp"
#include "kernels/jit/pool/backward/average_period.hpp"

#include <gtest/gtest.h>

#include "kernels/jit/pool/backward/backward.hpp"
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

/// Over planes, or over slices that stay apart.
PoolCase random_average(Random& random) {
  Geometry g;
  if (random.coin()) {
    const int64_t slices = random.whole(1, 3);
    g.add({.wide = slices, .narrow = slices, .kernel = 1, .stride = 1});
  }
  for (int i = 0; i < 2; ++i) {
    Geometry::Axis axis{.wide = 0, .narrow = random.whole(1, 9), .kernel = 1, .stride = random.whole(2, 3)};
    axis.kernel = random.whole(1, 2 * axis.stride);
    axis.begin = random.whole(0, axis.kernel - 1);
    axis.end = random.whole(0, axis.kernel - 1);
    const int64_t span = (axis.narrow - 1) * axis.stride + axis.kernel;
    axis.wide = std::max<int64_t>(1, span - axis.begin - axis.end + random.whole(0, axis.stride - 1));
    axis.narrow = (axis.wide + axis.begin + axis.end - axis.kernel) / axis.stride + 1;
    g.add(axis);
  }
  return {.op = OpKind::AvgPoolBackward,
          .windows = g,
          .channel_last = true,
          .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
          .batch = random.whole(1, 3),
          .channels = random.pick<int64_t>({28, 32, 40, 48, 64, 70, 128}),
          .exclude_pad = random.coin()};
}

TEST(average_period, agrees_with_the_interpreter) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Problem p = pool_problem(random_average(random));
    if (random.coin()) add_pool_expressions(p, random);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    taken += jit::AveragePeriodPool::fits(p, kTarget);
    expect_interpreted(p, random, Isa::avx512);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 150);
}

/// Parts that begin inside a plane read the windows above them once more. Channels first, what is picked or spread is
/// added up in another order.
TEST(average_period, threads_and_the_other_layout_change_no_bit) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  const Kernel& row = *generated_row(StepKind::pool_backward, Isa::avx512);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    PoolCase pool = random_average(random);
    pool.batch = random.whole(1, 2);
    const Problem p = pool_problem(pool);
    pool.channel_last = false;
    Problem first = pool_problem(pool);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    std::vector<Buffer> in, in_first;
    in.push_back(random_buffer(p.in[0], random));
    in_first.push_back(nan_buffer(first.in[0]));
    const auto channel_last_at = [&](const Dims& dims, int64_t i) {  // element i of a channel-first tensor
      const int64_t cells = elements(dims) / dims[0] / pool.channels;
      const int64_t n = i / cells / pool.channels, c = i / cells % pool.channels, cell = i % cells;
      return (n * cells + cell) * pool.channels + c;
    };
    for (int64_t i = 0; i < elements(first.in[0].dims); ++i)
      store_from_double(in_first[0].data(), pool.dtype, i, in[0].get(channel_last_at(first.in[0].dims, i)));
    const auto got = run_kernel(row, p, in, 1);
    for (const int threads : {2, 3, 8}) ASSERT_EQ(byte_difference(run_kernel(row, p, in, threads), got), "");
    const auto other = run_kernel(row, first, in_first, 1);
    const double tolerance =
        jit::is_picked(first, kTarget) || jit::AverageRowsPool::fits(first, {.isa = Isa::avx512, .threads = 1})
            ? tolerance_of(pool.dtype)
            : 0;
    for (int64_t i = 0; i < elements(first.out[0].dims); ++i)
      ASSERT_NEAR(other[0].get(i), got[0].get(channel_last_at(first.out[0].dims, i)), tolerance) << "element " << i;
  }
}

TEST(average_period, large_results_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(8, [](Random& random, Dtype dtype, int64_t bytes) {
    PoolCase pool = random_average(random);
    pool.dtype = dtype;
    pool.channels = random.pick<int64_t>({32, 64, 96});
    pool.batch = 1;
    pool.batch = bytes / (pool_problem(pool).out[0].strides[0] * element_bytes(dtype)) + 2;
    Problem p = pool_problem(pool);
    if (random.coin()) add_and_store_twice(p);
    return p;
  });
}

/// Small ones, as parts of something that leaves the caches: so these stores are tested on any machine.
TEST(average_period, parts_of_large_results_have_the_bits_of_stores_through_the_caches) {
  if (!has_avx512()) GTEST_SKIP() << "generated for AVX-512 alone";
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    PoolCase pool = random_average(random);
    pool.channels = random.pick<int64_t>({32, 64, 96});
    Problem p = pool_problem(pool);
    if (random.coin()) add_and_store_twice(p);
    p.result_bytes = int64_t{1} << 40;
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    expect_same_bits(Isa::avx512, p);
  }
}

TEST(average_period, leaves_others_alone) {
  PoolCase pool{.op = OpKind::AvgPoolBackward, .channel_last = true, .channels = 16};
  const auto fits = [&](const PoolCase& c, const Target& target = kTarget) {
    return jit::AveragePeriodPool::fits(pool_problem(c), target);
  };
  const auto windows = [](int64_t kernel, int64_t stride) {
    Geometry g;
    for (int axis = 0; axis < 2; ++axis)
      g.add({.wide = 7 * stride + kernel, .narrow = 8, .kernel = kernel, .stride = stride});
    return g;
  };
  pool.windows = windows(3, 2);
  ASSERT_TRUE(fits(pool));
  EXPECT_FALSE(fits(pool, {.isa = Isa::avx2, .threads = 2}));
  const auto changed = [&](const auto& change) {
    PoolCase other = pool;
    change(other);
    return fits(other);
  };
  EXPECT_FALSE(changed([](PoolCase& c) { c.channel_last = false; }));
  EXPECT_FALSE(changed([](PoolCase& c) { c.op = OpKind::MaxPoolBackward; }));
  EXPECT_FALSE(changed([](PoolCase& c) { c.channels = 3; })) << "few channels";
  EXPECT_FALSE(changed([&](PoolCase& c) { c.windows = windows(3, 1); })) << "without strides";
  EXPECT_FALSE(changed([&](PoolCase& c) { c.windows = windows(5, 2); })) << "three windows over a cell";
  EXPECT_FALSE(changed([&](PoolCase& c) { c.windows = windows(4, 4); })) << "too many rows of a period";
  pool.batch = 2;
  Problem unaligned = pool_problem(pool);
  unaligned.result_bytes = int64_t{1} << 40;
  EXPECT_TRUE(jit::AveragePeriodPool::fits(unaligned, kTarget));
  unaligned.out[0].strides[0] += 1;
  EXPECT_FALSE(jit::AveragePeriodPool::fits(unaligned, kTarget)) << "cells that cannot go past the caches";
}

}  // namespace
}  // namespace partita::test
