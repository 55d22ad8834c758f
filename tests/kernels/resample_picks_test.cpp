// SPDX-License-Identifier: Apache-2.0
// Resampling that picks its results from registers: which problems it takes, its results against the
// reference, through the caches and past them, in whole lines and in rows that begin anywhere.
#include <gtest/gtest.h>

#include "kernels/jit/resample/picked.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/resampling.hpp"

namespace partita::test {
namespace {

using jit::PickedResample;

Problem resampled(const std::vector<int64_t>& from, const std::vector<int64_t>& to, const char* mode = "linear") {
  return resampling({2, 3, from, to, false}, {.mode = mode, .dtype = Dtype::bf16});
}

/// Mostly up along x; anywhere along y and z.
Problem random_resampling(Random& random) {
  const bool channel_last = random.coin();
  const bool narrow = !channel_last && random.coin();  // rows that follow each other from plane to plane
  const int64_t channels = narrow ? random.whole(20, 70) : random.whole(1, channel_last ? 25 : 5);
  const auto places = [&] {
    return narrow ? random.whole(2, 10) : channel_last ? random.whole(1, 1 + 200 / channels) : random.whole(8, 90);
  };
  Resampled s{random.whole(1, 2), channels, {}, {}, channel_last};
  for (int64_t axes = random.whole(1, 3), i = 0; i < axes; ++i) {
    s.small.push_back(i + 1 == axes ? places() : random.whole(1, 6));
    const int64_t small = s.small.back();
    s.large.push_back(random.pick<int64_t>({small, 2 * small, 4 * small, random.whole(1, 3 * small)}));
  }
  return resampling(s, {random.coin(), random.whole(0, 2) == 0 ? "nearest" : "linear",
                        random.pick<std::string>({"half_pixel", "align_corners"}),
                        random.pick({Dtype::f32, Dtype::bf16, Dtype::f16})});
}

TEST(resample_picks, results_are_the_references) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Problem p = random_resampling(random);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    if (random.whole(0, 3) == 0) {                         // rows that do not follow each other
      Dims padded = p.out[0].dims;
      padded.back() += random.pick<int64_t>({1, 32});
      const Dims dims = p.out[0].dims;
      p.out[0] = dense_desc(p.out[0].dtype, padded);
      p.out[0].dims = dims;
    }
    if (!PickedResample::fits(p, Isa::avx512)) continue;
    ++taken;
    expect_rows_agree(p, random, {.tolerance_factor = 4, .at_least = 2, .target = {.isa = Isa::avx512, .threads = 3}});
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 120);
}

TEST(resample_picks, expressions_read_operands_of_any_shape) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    taken += expect_operands_of_any_shape(random_resampling(random), Isa::avx512, random, PickedResample::fits) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 20);
}

TEST(resample_picks, infinities_stay_where_they_are_read) {
  for (const char* coordinates : {"half_pixel", "align_corners"})
    for (const char* mode : {"nearest", "linear"})
      for (const bool backward : {false, true})
        expect_infinities_where_they_are_read(
            resampling({2, 3, {4, 30}, {7, 57}, false}, {backward, mode, coordinates}));
}

TEST(resample_picks, any_number_of_threads_gives_the_same_bits) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  for (const int kind : {0, 1, 2, 3}) {
    const bool large = kind % 2 == 1;
    Problem p = resampling({1, 2, {40, 56}, {80, 112}, false}, {.backward = kind > 1, .dtype = Dtype::bf16});
    if (large) p.result_bytes = int64_t{1} << 40;
    ASSERT_TRUE(PickedResample::fits(p, Isa::avx512));
    Random random(3);
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
    const Kernel& row = *generated_row(p.step, Isa::avx512);
    const auto expected = run_kernel(row, p, in, 1);
    for (int threads : {2, 3, 8}) EXPECT_EQ(byte_difference(run_kernel(row, p, in, threads), expected), "");
  }
}

TEST(resample_picks, takes_few_neighbours_along_both_axes_channels_first_or_few) {
  const auto fits = [](const Problem& p) { return PickedResample::fits(p, Isa::avx512); };
  EXPECT_TRUE(fits(resampled({8, 8}, {16, 16})));
  EXPECT_FALSE(PickedResample::fits(resampled({8, 8}, {16, 16}), Isa::avx2));
  EXPECT_TRUE(fits(resampled({8, 8}, {16, 16}, "nearest")));
  EXPECT_TRUE(fits(resampled({16, 8}, {8, 16})));
  EXPECT_TRUE(fits(resampled({3, 8, 8}, {6, 16, 16}, "nearest")));
  EXPECT_TRUE(fits(resampled({3, 8, 8}, {6, 16, 16})));
  EXPECT_FALSE(fits(resampling({2, 3, {3, 8, 16}, {6, 16, 32}, false}, {.backward = true})));  // sums of 16 rows
  EXPECT_FALSE(fits(resampled({8, 7}, {15, 14})));     // no whole vector, and a few planes
  EXPECT_TRUE(fits(resampled({8, 7}, {16, 14})));      // but sixteen rows are some
  EXPECT_FALSE(fits(resampled({8, 80}, {16, 16})));    // places far from each other
  EXPECT_FALSE(fits(resampled({8, 800}, {8, 1600})));  // much code
  EXPECT_TRUE(fits(resampling({2, 3, {8, 8}, {16, 16}, true}, {})));
  EXPECT_TRUE(fits(resampling({2, 24, {8, 8}, {16, 16}, true}, {.mode = "nearest"})));
  EXPECT_FALSE(fits(resampling({2, 25, {8, 8}, {16, 16}, true}, {})));   // many channels
  EXPECT_FALSE(fits(resampling({2, 3, {8, 2}, {15, 5}, true}, {})));     // no whole vector
  EXPECT_FALSE(fits(resampling({2, 3, {8, 200}, {8, 400}, true}, {})));  // much code
  EXPECT_TRUE(fits(resampling({2, 3, {8, 16}, {16, 32}, false}, {.backward = true})));
  EXPECT_FALSE(fits(resampling({2, 3, {8, 16}, {16, 48}, false}, {.backward = true})));  // many places
  EXPECT_FALSE(fits(resampling({2, 3, {8, 16}, {24, 32}, false}, {.backward = true})));  // many rows
  Problem front = resampled({8, 8}, {16, 16});
  ExprBuilder b(front.front);
  front.front.result = b.apply(ExprOp::exp, b.load(0));
  EXPECT_FALSE(fits(front));
}

}  // namespace
}  // namespace partita::test
