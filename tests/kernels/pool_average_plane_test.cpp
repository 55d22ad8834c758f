// SPDX-License-Identifier: Apache-2.0
// Channel-first averages with as many windows as cells, and their gradients, whose planes are walked as one row: random
// windows, divisors, types and expressions against the interpreter, on guarded memory, small planes in groups; large
// results past the caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/jit/pool/average/plane.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

/// As many windows as cells.
Problem same_extents(bool backward, Dtype dtype, int64_t batch, int64_t channels, Geometry g, bool exclude_pad) {
  g.narrow = g.wide;
  g.strides = g.dilations = std::vector<int64_t>(g.wide.size(), 1);
  return pool_problem({.op = backward ? OpKind::AvgPoolBackward : OpKind::AvgPool,
                       .windows = g,
                       .dtype = dtype,
                       .batch = batch,
                       .channels = channels,
                       .exclude_pad = exclude_pad});
}

/// One axis or two; windows of even lengths reach further to one side.
Problem random_average(Random& random, Dtype dtype, int64_t batch, int64_t channels) {
  Geometry g;
  const int64_t axes = random.whole(1, 2);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t kernel = random.whole(1, 5), begin = random.whole(0, kernel - 1);
    g.wide.push_back(i + 1 < axes ? random.whole(1, 20) : random.pick<int64_t>({16, 17, 31, 35, 64}));
    g.kernel.push_back(kernel);
    g.pads_begin.push_back(begin);
    g.pads_end.push_back(kernel - 1 - begin);
  }
  const bool backward = random.coin();
  return same_extents(backward, dtype, batch, channels, g, random.coin());
}

Problem three_by_three(bool backward) {
  const Geometry g{.wide = {6, 17},
                   .narrow = {},
                   .kernel = {3, 3},
                   .strides = {},
                   .dilations = {},
                   .pads_begin = {1, 1},
                   .pads_end = {1, 1},
                   .leftover = {}};
  return same_extents(backward, Dtype::f32, 1, 3, g, true);
}

TEST(pool_average_plane, agrees_with_the_interpreter) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      Problem p = random_average(random, random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), random.whole(1, 2),
                                 random.pick<int64_t>({1, 2, 7, 40, 150}));
      if (random.coin()) add_pool_expressions(p, random);
      SCOPED_TRACE(
          str(name_of(isa), " seed ", seed, ": ", text_of(p), " front ", text_of(p.front), " back ", text_of(p.back)));
      ASSERT_TRUE(jit::AveragePlanePool::fits(p));
      expect_interpreted(p, random, isa);
      if (HasFailure()) return;
    }
}

/// Infinity reaches the results around it, and none in another row that is its neighbour in memory.
TEST(pool_average_plane, what_lies_outside_a_row_does_not_matter) {
  for (const Isa isa : generated_isas()) {
    Random random(1);
    for (const bool backward : {false, true}) {
      const Problem p = three_by_three(backward);
      ASSERT_TRUE(jit::AveragePlanePool::fits(p));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random, {-2, 2}));
      auto* numbers = static_cast<float*>(in[0].data());
      // The last cell of a row: its neighbour in memory is the first cell of the next row.
      constexpr int64_t kPlane = 6 * 17, kCell = kPlane + 2 * 17 + 16;
      numbers[kCell] = std::numeric_limits<float>::infinity();
      const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
      const auto* results = static_cast<const float*>(got[0].data());
      for (int64_t i = 0; i < 3 * kPlane; ++i) {
        const int64_t y = i % kPlane / 17, x = i % 17;
        const bool near = i / kPlane == 1 && y >= 1 && y <= 3 && x >= 15;
        EXPECT_EQ(std::isinf(results[i]), near) << name_of(isa) << " element " << i;
      }
    }
  }
}

TEST(pool_average_plane, large_results_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(8, [](Random& random, Dtype dtype, int64_t bytes) {
    Problem p = random_average(random, dtype, 1, random.pick<int64_t>({16, 37, 64}));
    p.in[0].dims[0] = bytes / (p.in[0].strides[0] * element_bytes(dtype)) + 2;
    p.out = p.in;
    if (random.coin()) {  // the sum is stored twice
      p.ports_in = p.ports_out = 1;
      p.out.push_back(p.out[0]);
      ExprBuilder back(p.back);
      back.store(0, back.skeleton());
      back.store(1, back.max(back.skeleton(), back.constant(0)));
    }
    EXPECT_TRUE(jit::AveragePlanePool::fits(p));
    return p;
  });
}

TEST(pool_average_plane, takes_no_others) {
  const Problem p = three_by_three(true);
  ASSERT_TRUE(jit::AveragePlanePool::fits(p));
  const auto refused = [&](const auto& change) {
    Problem other = p;
    change(other);
    return !jit::AveragePlanePool::fits(other);
  };
  EXPECT_TRUE(refused([](Problem& o) { o.attrs.set(Attr::data_format, "NXC"); }));
  EXPECT_TRUE(refused([](Problem& o) { o.in[0].strides[2] += 1; })) << "rows lie apart";
  EXPECT_TRUE(refused([](Problem& o) { o.in[0].dims[2] += 1; })) << "another number of windows";
  EXPECT_TRUE(refused([](Problem& o) { o.in[0].dtype = o.out[0].dtype = Dtype::s8; })) << "integers are divided";
}

}  // namespace
}  // namespace partita::test
