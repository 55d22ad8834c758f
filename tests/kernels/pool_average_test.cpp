// SPDX-License-Identifier: Apache-2.0
// Gradients of averages that are stored past the caches, in rows of any length, and repeated values stored so: the same
// bits as through the caches.
#include <gtest/gtest.h>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

/// Windows over rows of any length; the result has at least `bytes` bytes.
Problem large_average(int64_t bytes, Dtype dtype, bool channel_last, Random& random) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t kernel = random.whole(2, 3), stride = random.whole(1, 3), pad = random.whole(0, 1);
    const int64_t wide = i + 1 == axes ? random.pick<int64_t>({5, 16, 35, 49, 64, 150}) : random.whole(3, 6);
    g.add({.wide = wide,
           .narrow = (wide + 2 * pad - kernel) / stride + 1,
           .kernel = kernel,
           .stride = stride,
           .begin = pad,
           .end = pad});
  }
  const bool exclude_pad = random.coin();
  const int64_t channels = random.pick<int64_t>({16, 24, 37, 64});
  int64_t cells = channels * element_bytes(dtype);
  for (int64_t wide : g.wide) cells *= wide;
  return pool_problem({.op = OpKind::AvgPoolBackward,
                       .windows = g,
                       .channel_last = channel_last,
                       .dtype = dtype,
                       .batch = bytes / cells + 2,
                       .channels = channels,
                       .exclude_pad = exclude_pad});
}

TEST(pool_average, large_results_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(12, [](Random& random, Dtype dtype, int64_t bytes) {
    Problem p = large_average(bytes, dtype, random.coin(), random);
    if (random.coin()) add_and_store_twice(p);
    return p;
  });
}

/// Small ones, as parts of something that leaves the caches: so these stores are tested on any machine.
TEST(pool_average, parts_of_large_results_have_the_bits_of_stores_through_the_caches) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      Problem p = large_average(0, dtype, random.coin(), random);
      if (random.coin()) add_and_store_twice(p);
      p.result_bytes = int64_t{1} << 40;
      SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
      expect_same_bits(isa, p);
    }
}

/// What the gradient of a global average is where planes lie apart: one number a plane, in rows of any length.
TEST(pool_average, large_repeated_values_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(8, [](Random& random, Dtype dtype, int64_t bytes) {
    const int64_t length = random.pick<int64_t>({1, 7, 31, 49, 64, 196, 300}), each = element_bytes(dtype);
    const Dims dims{bytes / (length * each) + 5, length};
    Problem p = problem_for(StepKind::loop, OpKind::Add);
    p.in = {dense_desc(dtype, dims), dense_desc(dtype, dims)};
    p.in[0].strides = {1, 0};
    p.out = {dense_desc(dtype, dims)};
    ExprBuilder back(p.back);
    const auto repeated = back.mul(back.load(0), back.constant(1.0f / 49));
    back.store(0, random.coin() ? repeated : back.add(repeated, back.load(1)));
    return p;
  });
}

}  // namespace
}  // namespace partita::test
