// SPDX-License-Identifier: Apache-2.0
// Gradients of averages in planes of narrow rows, channels first, whose rows of windows are spread over cells in
// registers: random windows, divisors, types and expressions against the interpreter and the reference, on guarded
// memory, through the caches and past them; what is left to others.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/jit/pool/average/rows.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/maxima.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

constexpr int64_t kLarge = int64_t{1} << 40;
constexpr Target kTarget{.isa = Isa::avx512, .threads = 2};

bool fits(const Problem& p) { return jit::AverageRowsPool::fits(p, kTarget); }

/// Some cells may lie under no window, windows hang over both borders, and be rounded up.
Geometry::Axis random_axis(Random& random, int64_t most_cells, int64_t least_stride) {
  Geometry::Axis a{.wide = random.whole(1, most_cells),
                   .narrow = 1,
                   .kernel = random.whole(1, 5),
                   .stride = random.whole(least_stride, 4),
                   .dilation = random.whole(0, 4) > 0 ? 1 : 2};
  const int64_t span = (a.kernel - 1) * a.dilation + 1;
  a.begin = random.whole(0, span - 1);
  a.end = random.whole(0, span - 1);
  a.wide = std::max(a.wide, span - a.begin - a.end);
  const int64_t room = a.wide + a.begin + a.end - span;
  a.narrow = room / a.stride + 1;
  a.leftover = room % a.stride;
  return a;
}

Problem random_average(Random& random, Dtype dtype) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  if (axes == 3) g.add({.wide = 2, .narrow = 2, .kernel = 1, .stride = 1});
  if (axes > 1) g.add(random_axis(random, random.coin() ? 12 : 40, 1));
  g.add(random_axis(random, random.coin() ? 20 : 120, random.whole(1, 2)));
  Problem p = pool_problem({.op = OpKind::AvgPoolBackward,
                            .windows = g,
                            .dtype = dtype,
                            .batch = random.whole(1, 3),
                            .channels = random.pick<int64_t>({16, 19, 40}),
                            .exclude_pad = random.coin()});
  if (random.whole(0, 3) == 0) p.attrs.set(Attr::divisor_override, random.whole(1, 7));
  return p;
}

/// Windows that share planes out, which may have more cells than there are or fewer.
Problem random_adaptive(Random& random, Dtype dtype) {
  Problem p = problem_for(StepKind::resample, OpKind::AdaptiveAvgPoolBackward);
  p.attrs.set(Attr::data_format, "NCX");
  Dims dims{random.whole(1, 3), random.pick<int64_t>({16, 19, 40})};
  for (int64_t axes = random.whole(1, 2); axes > 0; --axes) dims.push_back(random.whole(1, axes == 1 ? 100 : 40));
  Dims pooled = dims;
  for (int d = 2; d < dims.size(); ++d) pooled[d] = random.whole(1, dims[d] + 3);
  p.in = {dense_desc(dtype, pooled)};
  p.out = {dense_desc(dtype, dims)};
  return p;
}

Dtype random_float(Random& random) { return random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}); }

Geometry square(int64_t cells, int64_t kernel, int64_t stride, int64_t pad) {
  return geometry_of({cells, cells}, {kernel, kernel}, {stride, stride}, {pad, pad}, {1, 1});
}

Problem average(Dtype dtype, const Geometry& windows, int64_t channels = 40) {
  return pool_problem(
      {.op = OpKind::AvgPoolBackward, .windows = windows, .dtype = dtype, .batch = 2, .channels = channels});
}

TEST(pool_average_rows, gradients_are_the_references) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const Dtype dtype = random_float(random);
    Problem p = random.whole(0, 2) == 0 ? random_adaptive(random, dtype) : random_average(random, dtype);
    if (random.coin()) p.result_bytes = kLarge;
    if (random.whole(0, 3) == 0) {  // rows that lie apart
      for (auto* side : {&p.in, &p.out}) {
        Dims padded = (*side)[0].dims;
        padded.back() += random.pick<int64_t>({1, 32});
        (*side)[0].strides = dense_desc((*side)[0].dtype, padded).strides;
      }
    }
    if (!fits(p)) continue;
    ++taken;
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    expect_rows_agree(p, random, {.at_least = 2, .target = {.isa = Isa::avx512, .threads = 2}});
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 200);
}

TEST(pool_average_rows, expressions_agree_with_the_interpreter) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    Problem p = random_average(random, random_float(random));
    add_pool_expressions(p, random);
    if (random.coin()) p.result_bytes = kLarge;
    if (!fits(p)) continue;
    ++taken;
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), " front ", text_of(p.front), " back ", text_of(p.back)));
    expect_interpreted(p, random, Isa::avx512);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 100);
}

/// Where there is no window, what is computed in front of windows must not reach the sums: here it would be infinite.
TEST(pool_average_rows, windows_that_do_not_exist_add_nothing) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const int64_t cells : {7, 13, 28, 56}) {
      Random random(static_cast<uint64_t>(cells));
      Problem p = average(dtype, square(cells, 3, 2, 1));
      ExprBuilder front(p.front);
      p.front.result = front.div(front.constant(1), front.load(0));
      SCOPED_TRACE(text_of(p));
      ASSERT_TRUE(fits(p));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random, {0.5, 2}));
      const Kernel* row = generated_row(p.step, Isa::avx512);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, kTarget);
      for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
        const double value = load_as_double(got[0].data(), dtype, i);
        ASSERT_TRUE(value > 0 && value < 10) << "element " << i << ": " << value;
      }
    }
}

TEST(pool_average_rows, adaptive_windows_are_spread) {
  const auto adaptive = [](const Dims& dims, const Dims& pooled) {
    Problem p = problem_for(StepKind::resample, OpKind::AdaptiveAvgPoolBackward);
    p.attrs.set(Attr::data_format, "NCX");
    p.in = {dense_desc(Dtype::f32, pooled)};
    p.out = {dense_desc(Dtype::f32, dims)};
    return p;
  };
  EXPECT_TRUE(fits(adaptive({2, 16, 57, 57}, {2, 16, 7, 7})));
  EXPECT_TRUE(fits(adaptive({2, 16, 56, 56}, {2, 16, 32, 32})));
  EXPECT_FALSE(fits(adaptive({2, 16, 28, 28}, {2, 16, 27, 27}))) << "a vector of cells under too many windows";
  EXPECT_FALSE(fits(adaptive({2, 16, 5, 13, 13}, {2, 16, 2, 6, 6}))) << "windows over several planes";
}

/// An infinity reaches the cells of its window, and none in the next row or plane.
TEST(pool_average_rows, what_lies_in_another_window_does_not_matter) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  Random random(1);
  const Problem p = average(Dtype::f32, square(13, 3, 2, 0), 16);
  ASSERT_TRUE(fits(p));
  std::vector<Buffer> in;
  in.push_back(random_buffer(p.in[0], random, {-2, 2}));
  constexpr int64_t kWindows = 36, kCells = 169, kWindow = 3 * kWindows + 2 * 6 + 5;  // the last one of a row
  static_cast<float*>(in[0].data())[kWindow] = std::numeric_limits<float>::infinity();
  const auto got = run_kernel(*generated_row(p.step, Isa::avx512), p, in, kTarget);
  const auto* results = static_cast<const float*>(got[0].data());
  for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
    const int64_t y = i % kCells / 13, x = i % 13;
    EXPECT_EQ(std::isinf(results[i]), i / kCells == 3 && y >= 4 && y <= 6 && x >= 10) << "element " << i;
  }
}

TEST(pool_average_rows, threads_change_no_byte) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const int64_t bytes : {int64_t{0}, kLarge}) {
      Random random(7);
      Problem p = average(dtype, square(17, 5, 3, 0), 101);
      p.result_bytes = bytes;
      SCOPED_TRACE(text_of(p));
      ASSERT_TRUE(fits(p));
      expect_threads_change_no_byte(p, random, Isa::avx512);
    }
}

/// In rows that are whole cache lines, and in others.
TEST(pool_average_rows, large_results_have_the_bits_of_stores_through_the_caches) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  expect_same_bits_of_seeds(8, [](Random& random, Dtype dtype, int64_t bytes) {
    Problem p = average(dtype, square(random.pick<int64_t>({13, 28, 32, 48, 64, 112}), 3, 2, 1), 16);
    p.in[0].dims[0] = p.out[0].dims[0] = bytes / (p.out[0].strides[0] * element_bytes(dtype)) + 2;
    if (random.coin()) add_and_store_twice(p);
    return p;
  });
}

/// A row's last half of a line leaves with the first half of the next row, where a period has both kinds of rows.
TEST(pool_average_rows, rows_may_begin_at_half_lines) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16})
    for (const int64_t cells : {16, 48, 80, 112})
      for (const int64_t stride : {2, 3, 4})
        for (const int64_t pad : {0, 1}) {
          Random random(static_cast<uint64_t>(cells + stride));
          Problem p = average(dtype, square(cells, stride + 1, stride, pad), 16);
          p.result_bytes = kLarge;
          SCOPED_TRACE(text_of(p));
          const bool in_turns = stride % 2 == 0;
          ASSERT_TRUE(fits(p) || !in_turns);
          EXPECT_EQ(jit::AverageRowsKernel::stores_lines(jit::AveragePlan(p)), in_turns);
          expect_rows_agree(p, random, {.at_least = 2, .target = kTarget});
        }
}

TEST(pool_average_rows, leaves_others_alone) {
  const Problem p = average(Dtype::f32, square(13, 3, 2, 0));
  ASSERT_TRUE(fits(p));
  const auto refused = [&](const auto& change) {
    Problem other = p;
    change(other);
    return !fits(other);
  };
  EXPECT_TRUE(refused([](Problem& o) { o.attrs.set(Attr::data_format, "NXC"); }));
  EXPECT_TRUE(refused([](Problem& o) { o.in[0].dtype = o.out[0].dtype = Dtype::s8; })) << "integers are divided";
  EXPECT_FALSE(refused([](Problem& o) { o.out[0].strides[0] += 8; })) << "images may lie apart";
  EXPECT_TRUE(refused([](Problem& o) { o.out[0].strides[0] += 8, o.result_bytes = kLarge; }))
      << "but not where they leave the caches";
  EXPECT_TRUE(refused([](Problem& o) { o.out[0].strides[3] = 2; })) << "cells lie apart";
  EXPECT_TRUE(refused([](Problem& o) {
    o.out[0].strides[2] += 3, o.out[0].strides[1] += 39, o.out[0].strides[0] += 39 * 40, o.result_bytes = kLarge;
  })) << "rows that lie apart do not leave the caches";
  EXPECT_FALSE(jit::AverageRowsPool::fits(p, {.isa = Isa::avx2, .threads = 2}));
  EXPECT_FALSE(fits(average(Dtype::f32, square(13, 3, 2, 0), 1))) << "few planes";
  EXPECT_FALSE(fits(average(Dtype::f32, square(8, 3, 1, 1)))) << "few cells, as many windows";
  EXPECT_TRUE(fits(average(Dtype::f32, square(14, 3, 1, 1))));
  EXPECT_FALSE(fits(average(Dtype::f32, square(28, 3, 1, 1)))) << "wide rows, as many windows";
  EXPECT_FALSE(fits(average(Dtype::f32, square(4, 3, 2, 1)))) << "very few cells";
  EXPECT_FALSE(fits(average(Dtype::f32, square(128, 3, 2, 1)))) << "more rows of windows than registers";
  EXPECT_TRUE(fits(average(Dtype::f32, square(28, 2, 2, 0))));
  EXPECT_FALSE(fits(average(Dtype::f32, square(56, 2, 2, 0)))) << "wide rows, one window over each cell";
  const Geometry volume = geometry_of({3, 13, 13}, {2, 3, 3}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1});
  EXPECT_FALSE(fits(average(Dtype::f32, volume))) << "windows over several planes";
}

}  // namespace
}  // namespace partita::test
