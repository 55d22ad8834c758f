// SPDX-License-Identifier: Apache-2.0
// Channel-last averages without strides, and their gradients, column by column: two rows of cells share windows,
// whether they are of one image or not. Random windows, divisors, types and expressions against the interpreter, on
// guarded memory; large results past the caches.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/jit/pool/average/channel_last.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

Problem average(bool backward, Dtype dtype, int64_t batch, int64_t channels, const Geometry& g, bool exclude_pad) {
  return pool_problem({.op = backward ? OpKind::AvgPoolBackward : OpKind::AvgPool,
                       .windows = g,
                       .channel_last = true,
                       .dtype = dtype,
                       .batch = batch,
                       .channels = channels,
                       .exclude_pad = exclude_pad});
}

/// Two axes or three, windows of two to four cells along the last two.
Problem random_average(Random& random, Dtype dtype, int64_t batch, int64_t channels) {
  Geometry g;
  const int64_t axes = random.whole(2, 3);
  for (int64_t i = 0; i < axes; ++i) {
    Geometry::Axis axis{.wide = random.whole(4, i + 1 < axes ? 9 : 20), .narrow = 0, .kernel = 1, .stride = 1};
    axis.kernel = i + 2 < axes ? random.whole(1, 3) : random.pick<int64_t>({2, 3, 3, 4});
    axis.begin = random.whole(0, axis.kernel - 1);
    axis.end = random.whole(0, axis.kernel - 1);
    axis.narrow = axis.wide + axis.begin + axis.end - axis.kernel + 1;
    g.add(axis);
  }
  const bool backward = random.coin();
  return average(backward, dtype, batch, channels, g, random.coin());
}

TEST(pool_average_columns, agrees_with_the_interpreter) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 150; ++seed) {
      Random random(seed);
      Problem p = random_average(random, random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), random.whole(1, 3),
                                 random.pick<int64_t>({1, 5, 16, 24, 32, 64, 70, 128}));
      if (random.coin()) add_pool_expressions(p, random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      ASSERT_TRUE(jit::AverageLastPool::fits(p));
      expect_interpreted(p, random, isa);
      if (HasFailure()) return;
    }
}

/// What two rows share is no sum of what only one has.
TEST(pool_average_columns, infinities_stay_under_their_windows) {
  Geometry g;
  for (int axis = 0; axis < 2; ++axis) g.add({.wide = 7, .narrow = 7, .kernel = 3, .stride = 1, .begin = 1, .end = 1});
  for (const Isa isa : generated_isas())
    for (const bool backward : {false, true})
      for (int64_t at = 0; at < 2 * 7; ++at) {
        Random random(1);
        const Problem p = average(backward, Dtype::f32, 2, 1, g, true);
        std::vector<Buffer> in;
        in.push_back(random_buffer(p.in[0], random, {-2, 2}));
        static_cast<float*>(in[0].data())[at * 7 + 3] = std::numeric_limits<float>::infinity();
        const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
        for (int64_t i = 0; i < 2 * 7 * 7; ++i) {
          const int64_t row = i / 7, x = i % 7;
          const bool near = row / 7 == at / 7 && std::abs(row - at) <= 1 && std::abs(x - 3) <= 1;
          EXPECT_EQ(std::isinf(static_cast<const float*>(got[0].data())[i]), near) << name_of(isa) << " row " << row;
        }
      }
}

/// The average of equal numbers is that number: what is added up is divided as a whole.
TEST(pool_average_columns, an_average_of_equal_numbers_is_exact) {
  Geometry g;
  for (int axis = 0; axis < 2; ++axis) g.add({.wide = 9, .narrow = 9, .kernel = 3, .stride = 1, .begin = 1, .end = 1});
  for (const Isa isa : generated_isas()) {
    const Problem p = average(false, Dtype::f32, 1, 20, g, true);
    Random random(1);
    std::vector<Buffer> in;
    in.push_back(random_buffer(p.in[0], random, {1, 1}));
    const auto got = run_kernel(*generated_row(p.step, isa), p, in, 1);
    for (int64_t i = 0; i < 9 * 9 * 20; ++i) EXPECT_EQ(static_cast<const float*>(got[0].data())[i], 1) << name_of(isa);
  }
}

TEST(pool_average_columns, large_results_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(8, [](Random& random, Dtype dtype, int64_t bytes) {
    Problem p = random_average(random, dtype, 1, random.pick<int64_t>({16, 32, 64, 96}));
    const int64_t batch = bytes / (p.out[0].strides[0] * element_bytes(dtype)) + 2;
    p.in[0].dims[0] = p.out[0].dims[0] = batch;
    if (random.coin()) add_and_store_twice(p);
    EXPECT_TRUE(jit::AverageLastPool::fits(p));
    return p;
  });
}

TEST(pool_average_columns, takes_no_other_averages) {
  Geometry g;
  for (int axis = 0; axis < 2; ++axis) g.add({.wide = 8, .narrow = 8, .kernel = 3, .stride = 1, .begin = 1, .end = 1});
  const Problem p = average(false, Dtype::f32, 1, 4, g, true);
  ASSERT_TRUE(jit::AverageLastPool::fits(p));
  const auto refused = [&](const auto& change) {
    Problem other = p;
    change(other);
    return !jit::AverageLastPool::fits(other);
  };
  EXPECT_TRUE(refused([](Problem& o) { o.attrs.set(Attr::data_format, "NCX"); }));
  EXPECT_TRUE(refused([](Problem& o) { o.op = OpKind::MaxPool; }));
  EXPECT_TRUE(refused([](Problem& o) {
    o.attrs.set(Attr::strides, std::vector<int64_t>{1, 2});
    o.out[0] = dense_desc(Dtype::f32, Dims{1, 8, 4, 4});
  })) << "windows apart";
  EXPECT_TRUE(refused([](Problem& o) { o.in[0].dtype = o.out[0].dtype = Dtype::s8; })) << "integers are divided";
}

}  // namespace
}  // namespace partita::test
