// SPDX-License-Identifier: Apache-2.0
// Poolings that pick their results from registers: which ones these are; random windows, divisors, types
// and expressions against reference and interpreter, on guarded memory, through the caches and past them.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/jit/pool/picked.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

using jit::PickedPool;
using List = std::vector<int64_t>;

struct Pooled {
  bool maximum = false;
  bool gradient = false;  ///< of an average
  bool channel_last = false;
  int64_t batch = 2, channels = 3;
  Dtype dtype = Dtype::f32;
};

Problem pooled(const Pooled& kind, const Geometry& g) {
  return pool_problem({.op = kind.gradient  ? OpKind::AvgPoolBackward
                             : kind.maximum ? OpKind::MaxPool
                                            : OpKind::AvgPool,
                       .windows = g,
                       .channel_last = kind.channel_last,
                       .dtype = kind.dtype,
                       .batch = kind.batch,
                       .channels = kind.channels});
}

/// Windows of `kernel` cells, `stride` apart, none of them in the padding alone.
Geometry::Axis axis(int64_t windows, int64_t kernel, int64_t stride, int64_t begin = 0, int64_t end = 0) {
  return {.wide = (windows - 1) * stride + kernel - begin - end,
          .narrow = windows,
          .kernel = kernel,
          .stride = stride,
          .begin = begin,
          .end = end};
}

Geometry::Axis random_axis(Random& random, int64_t windows, int64_t most) {
  const int64_t kernel = random.whole(1, most);
  return axis(windows, kernel, random.whole(1, 3), random.whole(0, kernel / 2), random.whole(0, kernel / 2));
}

Problem random_pooling(Random& random) {
  Geometry g;
  const bool channel_last = random.coin();
  const bool narrow = !channel_last && random.coin();  // rows that follow each other from plane to plane
  const int64_t channels = narrow ? random.whole(20, 70) : random.whole(1, channel_last ? 25 : 5);
  const auto windows = [&] {
    return narrow ? random.whole(2, 15) : channel_last ? random.whole(1, 1 + 200 / channels) : random.whole(16, 70);
  };
  for (int64_t axes = random.whole(1, 3), i = 0; i < axes; ++i)
    g.add(i + 1 == axes ? random_axis(random, windows(), 4)
                        : random_axis(random, random.whole(2, 6), i + 2 < axes ? 2 : 3));
  const bool maximum = random.coin();
  const Pooled kind{.maximum = maximum,
                    .gradient = !maximum && (channel_last || narrow) && random.coin(),
                    .channel_last = channel_last,
                    .batch = random.whole(1, 2),
                    .channels = channels,
                    .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16})};
  Problem p = pooled(kind, g);
  if (kind.maximum) return p;
  const bool exclude_pad = random.coin();
  p.attrs.set(Attr::exclude_pad, exclude_pad);
  if (!exclude_pad) p.attrs.set(Attr::exclude_overhang, random.coin());
  if (random.whole(0, 3) == 0) p.attrs.set(Attr::divisor_override, random.whole(1, 7));
  return p;
}

TEST(pool_picked, results_are_the_references) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    Problem p = random_pooling(random);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    if (random.whole(0, 3) == 0) {                         // rows that do not follow each other
      for (auto* side : {&p.in, &p.out}) {
        Dims padded = (*side)[0].dims;
        padded.back() += random.pick<int64_t>({1, 32});
        (*side)[0].strides = dense_desc((*side)[0].dtype, padded).strides;
      }
    }
    if (!PickedPool::fits(p, Isa::avx512)) continue;
    ++taken;
    SCOPED_TRACE(str("seed ", seed));
    expect_rows_agree(p, random, {.at_least = 2, .target = {.isa = Isa::avx512, .threads = 3}});
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 150);
}

TEST(pool_picked, expressions_behind_agree_with_the_interpreter) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    Problem p = random_pooling(random);
    add_pool_expressions(p, random);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;
    if (!PickedPool::fits(p, Isa::avx512)) continue;
    ++taken;
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    expect_interpreted(p, random, Isa::avx512);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 50);
}

Geometry square(const Geometry::Axis& a) {
  Geometry g;
  g.add(a);
  g.add(a);
  return g;
}

TEST(pool_picked, gradients_channels_first_are_picked_in_narrow_rows) {
  const auto is_picked = [](const Geometry& g, Dtype dtype, bool large) {
    Problem p = pooled({.gradient = true, .channels = 64, .dtype = dtype}, g);
    if (large) p.result_bytes = int64_t{1} << 40;
    return jit::is_picked(p, {.isa = Isa::avx512, .threads = 2});
  };
  const Geometry narrow = square(axis(6, 3, 2));  // 13 cells
  EXPECT_TRUE(is_picked(narrow, Dtype::f32, true));
  EXPECT_FALSE(is_picked(narrow, Dtype::f32, false)) << "rows are spread in the caches";
  EXPECT_FALSE(is_picked(narrow, Dtype::bf16, true)) << "and those of 16 bits past them, too";
  EXPECT_FALSE(is_picked(square(axis(3, 3, 2)), Dtype::f32, true)) << "seven cells";
  EXPECT_FALSE(is_picked(square(axis(8, 2, 2)), Dtype::f32, true)) << "sixteen cells";
  EXPECT_FALSE(is_picked(square(axis(12, 3, 1, 1, 1)), Dtype::f32, true)) << "as many windows as cells";
}

/// Turns of rows read and write what follows each other.
TEST(pool_picked, rows_of_few_results_lie_side_by_side) {
  Problem p = pooled({.channels = 16}, square(axis(7, 2, 2)));
  EXPECT_TRUE(PickedPool::fits(p, Isa::avx512));
  Problem apart = p;
  Dims padded = p.out[0].dims;
  padded.back() += 1;
  apart.out[0].strides = dense_desc(Dtype::f32, padded).strides;
  EXPECT_FALSE(PickedPool::fits(apart, Isa::avx512));
  Problem images = p;  // that lie apart in the source
  images.in[0].strides[0] += 64;
  EXPECT_FALSE(PickedPool::fits(images, Isa::avx512));
}

/// A window at the border has fewer cells; a NaN or an infinity elsewhere must not reach it.
TEST(pool_picked, nan_and_infinities_reach_the_windows_over_them) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  for (const bool maximum : {true, false})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      const Problem p = pooled({.maximum = maximum}, square(axis(18, 3, 2, 1, 1)));
      ASSERT_TRUE(PickedPool::fits(p, Isa::avx512));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      auto* numbers = static_cast<float*>(in[0].data());
      for (int64_t i = 0; i < elements(p.in[0].dims); ++i) {
        const int64_t kind = random.whole(0, 30);
        if (kind == 0) numbers[i] = std::numeric_limits<float>::quiet_NaN();
        if (kind == 1) numbers[i] = std::numeric_limits<float>::infinity();
        if (kind > 28 || (maximum && kind > 10)) numbers[i] = -std::numeric_limits<float>::infinity();
      }
      const auto got = run_kernel(*generated_row(p.step, Isa::avx512), p, in, 2);
      EXPECT_EQ(difference(got[0], reference_results(p, in)[0], tolerance_of(Dtype::f32)), "") << "seed " << seed;
      if (HasFailure()) return;
    }
}

TEST(pool_picked, any_number_of_threads_gives_the_same_bits) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  for (const bool large : {false, true})
    for (const int64_t windows : {40, 7}) {
      const int64_t channels = windows == 40 ? 2 : 301;  // in turns of rows, with planes left over
      Problem p = pooled({.channels = channels, .dtype = Dtype::bf16}, square(axis(windows, 3, 2, 1, 0)));
      if (large) p.result_bytes = int64_t{1} << 40;
      ASSERT_TRUE(PickedPool::fits(p, Isa::avx512));
      Random random(3);
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      const Kernel& row = *generated_row(p.step, Isa::avx512);
      const auto expected = run_kernel(row, p, in, 1);
      for (int threads : {2, 3, 8}) EXPECT_EQ(byte_difference(run_kernel(row, p, in, threads), expected), "");
    }
}

TEST(pool_picked, takes_windows_of_few_cells_channels_first_or_few) {
  const auto fits = [](const Geometry& g, const Pooled& kind = {}) {
    return PickedPool::fits(pooled(kind, g), Isa::avx512);
  };
  const Geometry halved = square(axis(16, 2, 2));
  EXPECT_TRUE(fits(halved));
  EXPECT_TRUE(fits(halved, {.maximum = true}));
  EXPECT_FALSE(PickedPool::fits(pooled({}, halved), Isa::avx2));
  EXPECT_TRUE(fits(square(axis(20, 3, 2, 1, 1))));
  EXPECT_FALSE(fits(square(axis(15, 2, 2)))) << "no whole vector, and a few planes";
  EXPECT_TRUE(fits(square(axis(15, 2, 2)), {.channels = 8})) << "sixteen rows of fifteen are some vectors";
  EXPECT_TRUE(fits(square(axis(12, 2, 2)))) << "four rows of twelve";
  EXPECT_FALSE(fits(square(axis(3, 2, 2)), {.channels = 64})) << "sixteen results lie in six rows";
  EXPECT_FALSE(fits(square(axis(16, 5, 2)))) << "sums of five rows";
  EXPECT_TRUE(fits(square(axis(16, 4, 4))));
  EXPECT_FALSE(fits(square(axis(16, 4, 5)))) << "places far from each other";
  EXPECT_FALSE(fits(halved, {.dtype = Dtype::s8})) << "integers are divided";
  EXPECT_TRUE(fits(square(axis(6, 2, 2)), {.channel_last = true}));
  EXPECT_FALSE(fits(square(axis(5, 2, 2)), {.channel_last = true})) << "no whole vector";
  EXPECT_TRUE(fits(halved, {.channel_last = true, .channels = 24}));
  EXPECT_FALSE(fits(halved, {.channel_last = true, .channels = 25})) << "many channels";
  EXPECT_FALSE(fits(square(axis(400, 2, 2)), {.channel_last = true})) << "much code";
  EXPECT_TRUE(fits(square(axis(6, 3, 1, 1, 1)), {.gradient = true, .channel_last = true}));
  EXPECT_FALSE(fits(square(axis(6, 2, 3)), {.gradient = true, .channel_last = true})) << "cells under no window";
  EXPECT_TRUE(fits(square(axis(6, 3, 2)), {.gradient = true, .channels = 16})) << "channels first";
  const PoolCase maximum{
      .op = OpKind::MaxPoolBackward, .windows = square(axis(6, 2, 2)), .channel_last = true, .channels = 3};
  EXPECT_FALSE(PickedPool::fits(pool_problem(maximum), Isa::avx512));
  Geometry volume = halved;
  volume.add(axis(16, 2, 2));
  EXPECT_TRUE(fits(volume)) << "four rows";
  Geometry empty = square(axis(16, 2, 1));
  empty.pads_begin[0] = 2;
  empty.narrow[0] = 18;
  EXPECT_FALSE(fits(empty)) << "a window in the padding alone";
  Problem other = pooled({}, halved);
  other.attrs.set(Attr::data_format, "NXC");
  EXPECT_FALSE(PickedPool::fits(other, Isa::avx512));
  other = pooled({}, halved);
  ExprBuilder b(other.front);
  other.front.result = b.exp(b.load(0));
  EXPECT_FALSE(PickedPool::fits(other, Isa::avx512)) << "something in front";
}

}  // namespace
}  // namespace partita::test
