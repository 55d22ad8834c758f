// SPDX-License-Identifier: Apache-2.0
// Channel-first poolings whose planes are turned, because their rows are narrow: random windows, operands of every
// kind and expressions against the interpreter; threads and stores past the caches change no bit; what is left alone.
#include <gtest/gtest.h>

#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/jit/pool/forward/forward.hpp"
#include "kernels/jit/pool/turned.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/pool_expressions.hpp"

namespace partita::test {
namespace {

constexpr int64_t kLarge = int64_t{1} << 40;

/// Few windows along x; each has a cell.
PoolCase random_narrow(Random& random) {
  Geometry g;
  for (int64_t axes = random.whole(1, 3); axes > 0; --axes) {
    Geometry::Axis axis{.wide = 0, .narrow = random.whole(1, 6), .kernel = 1, .stride = random.whole(1, 3)};
    axis.kernel = random.whole(1, 4);
    axis.begin = random.whole(0, axis.kernel - 1);
    axis.end = random.whole(0, axis.kernel - 1);
    axis.wide = std::max<int64_t>(1, (axis.narrow - 1) * axis.stride + axis.kernel - axis.begin - axis.end);
    axis.narrow = (axis.wide + axis.begin + axis.end - axis.kernel) / axis.stride + 1;
    g.add(axis);
  }
  return {.op = pool_gradient(random.coin()),
          .windows = g,
          .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
          .batch = random.whole(1, 4),
          .channels = random.pick<int64_t>({8, 16, 33, 40, 64, 100}),
          .exclude_pad = random.coin()};
}

bool is_turned(const Problem& p, Isa isa) { return jit::turned_group(p, {.isa = isa, .threads = 2}).has_value(); }

/// Random poolings, some with expressions, some large; more than `least` of them are turned.
template <class Draw, class Turned>
void expect_interpreted_draws(uint64_t seeds, int least, Draw draw, Turned is_turned) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  int turned = 0;
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      Random random(seed);
      Problem p = draw(random);
      if (random.coin()) add_pool_expressions(p, random, PoolOperands::all);
      if (random.coin()) p.result_bytes = kLarge;
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      turned += is_turned(p, isa);
      expect_interpreted(p, random, isa);
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(turned, least);
}

TEST(pool_turned, agrees_with_the_interpreter) {
  expect_interpreted_draws(
      200, 150, [](Random& random) { return pool_problem(random_narrow(random)); }, is_turned);
}

/// Forward, windows that move by one cell.
Problem random_narrow_windows(Random& random) {
  PoolCase c = random_narrow(random);
  c.op = random.coin() ? OpKind::MaxPool : OpKind::AvgPool;
  c.windows = {};
  const int64_t axes = random.pick<int64_t>({1, 2, 3, 3});
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t kernel = random.whole(axes == 3 ? 2 : 5, axes == 3 ? 3 : 7), pad = random.whole(0, kernel / 2);
    const int64_t wide = random.whole(kernel, 7);
    c.windows.add(
        {.wide = wide, .narrow = wide + 2 * pad - kernel + 1, .kernel = kernel, .stride = 1, .begin = pad, .end = pad});
  }
  return pool_problem(c);
}

TEST(pool_turned, forward_poolings_agree_with_the_interpreter) {
  const auto least = 50 * static_cast<int>(std::ssize(generated_isas()));
  expect_interpreted_draws(120, least, random_narrow_windows,
                           [](const Problem& p, Isa isa) { return jit::turned_forward_group(p, isa).has_value(); });
}

TEST(pool_turned, leaves_alone_forward_poolings_of_wide_rows_and_of_windows_apart) {
  Isa isa = Isa::avx512;
  const auto turns = [&](const std::vector<int64_t>& wide, int64_t kernel, int64_t stride, bool channel_last = false) {
    PoolCase c{.op = OpKind::MaxPool, .windows = {}, .channel_last = channel_last, .batch = 2, .channels = 64};
    for (const int64_t cells : wide)
      c.windows.add({.wide = cells, .narrow = (cells - kernel) / stride + 1, .kernel = kernel, .stride = stride});
    return jit::turned_forward_group(pool_problem(c), isa).has_value();
  };
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  ASSERT_TRUE(turns({5, 5, 9}, 3, 1));
  ASSERT_TRUE(turns({24}, 5, 1));
  ASSERT_TRUE(turns({9, 9}, 5, 1));
  EXPECT_FALSE(turns({5, 5, 9}, 3, 2)) << "windows apart";
  EXPECT_FALSE(turns({5, 5, 34}, 3, 1)) << "rows of 32 windows";
  EXPECT_FALSE(turns({14, 14}, 5, 1)) << "planes";
  EXPECT_FALSE(turns({5, 5, 9}, 3, 1, true)) << "channels last";
  EXPECT_FALSE(turns({17, 17}, 3, 2)) << "picked by AVX-512";
  isa = Isa::avx2;
  EXPECT_TRUE(turns({17, 17}, 3, 2)) << "rows of eight windows";
  EXPECT_TRUE(turns({14, 14}, 2, 2));
  EXPECT_FALSE(turns({19, 19}, 3, 2)) << "rows of nine";
  EXPECT_FALSE(turns({19, 19}, 2, 3)) << "cells that no window has";
}

TEST(pool_turned, threads_change_no_byte) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Random random(seed);
      Problem p = seed % 2 == 0 ? random_narrow_windows(random) : pool_problem(random_narrow(random));
      add_pool_expressions(p, random, PoolOperands::all);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-2, 2}));
      const Kernel& row = *generated_row(p.step, isa);
      const auto got = run_kernel(row, p, in, 1);
      for (const int threads : {2, 3, 8}) ASSERT_EQ(byte_difference(run_kernel(row, p, in, threads), got), "");
    }
}

TEST(pool_turned, parts_of_large_results_have_the_bits_of_stores_through_the_caches) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Random random(seed);
      Problem p = pool_problem(random_narrow(random));
      p.result_bytes = kLarge;
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      expect_same_bits(isa, p);
    }
}

TEST(pool_turned, leaves_others_alone) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  const auto windows = [](int64_t count, int64_t kernel, int64_t stride) {
    Geometry g;
    for (int axis = 0; axis < 2; ++axis)
      g.add({.wide = (count - 1) * stride + kernel, .narrow = count, .kernel = kernel, .stride = stride});
    return g;
  };
  const PoolCase maximum{.op = OpKind::MaxPoolBackward, .windows = windows(3, 4, 3), .batch = 2, .channels = 64};
  PoolCase average = maximum;
  average.op = OpKind::AvgPoolBackward;
  const auto turns = [](const PoolCase& of, const auto& change) {
    Problem p = pool_problem(of);
    change(p);
    // With AVX-512 rows of such averages are spread.
    return is_turned(p, of.op == OpKind::AvgPoolBackward ? Isa::avx2 : machine_isa());
  };
  const auto nothing = [](Problem&) {};
  const auto with = [](PoolCase of, const auto& change) {
    change(of);
    return of;
  };
  ASSERT_TRUE(turns(maximum, nothing));
  ASSERT_TRUE(turns(average, nothing));
  EXPECT_FALSE(is_turned(pool_problem(average), Isa::avx512)) << "rows are spread";
  for (const PoolCase& of : {maximum, average}) {
    EXPECT_FALSE(turns(with(of, [](PoolCase& c) { c.channel_last = true; }), nothing));
    EXPECT_FALSE(turns(with(of, [](PoolCase& c) { c.batch = 1, c.channels = 20; }), nothing)) << "few planes";
    EXPECT_FALSE(turns(with(of, [&](PoolCase& c) { c.windows = windows(40, 3, 2); }), nothing)) << "wide rows";
    EXPECT_FALSE(turns(of, [](Problem& p) { p.out[0].strides[0] += 8; })) << "images lie apart";
    EXPECT_FALSE(turns(of, [](Problem& p) { p.in.back().strides[1] *= 2; })) << "so do gradients";
    EXPECT_FALSE(turns(of, [](Problem& p) { std::swap(p.out[0].strides[2], p.out[0].strides[3]); }))
        << "rows lie across";
  }
  EXPECT_FALSE(turns(with(average, [&](PoolCase& c) { c.windows = windows(3, 2, 2); }), nothing))
      << "windows that cover each cell once";
  EXPECT_TRUE(turns(with(maximum, [&](PoolCase& c) { c.windows = windows(3, 3, 3); }), nothing));
  // An operand that moves from image to image and over cells, but not over channels.
  Problem p = pool_problem(maximum);
  p.ports_in = 2;
  p.in.push_back(dense_desc(Dtype::f32, p.out[0].dims));
  ExprBuilder b(p.back);
  b.store(0, b.add(b.skeleton(), b.load(2)));
  EXPECT_TRUE(is_turned(p, machine_isa()));
  p.in[2].strides[1] = 0;
  EXPECT_FALSE(is_turned(p, machine_isa()));
}

}  // namespace
}  // namespace partita::test
