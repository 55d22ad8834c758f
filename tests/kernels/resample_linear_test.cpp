// SPDX-License-Identifier: Apache-2.0
// Channel-last linear interpolation and its gradient that read each place once for a row of results: which problems
// they take, and their results against the reference.
#include <gtest/gtest.h>

#include "kernels/jit/resample/linear.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/resampling.hpp"

namespace partita::test {
namespace {

using jit::ResampleLinear;

Problem resampled(Dtype dtype, int64_t channels, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                  bool backward = false, const char* mode = "linear") {
  return resampling({2, channels, from, to, true}, {backward, mode, "half_pixel", dtype});
}

/// Up or down along x, anywhere along the other axes, by whole factors or others.
Problem random_resampling(Random& random) {
  Resampled s{2, random.pick<int64_t>({16, 17, 32, 40, 64, 65, 128, 130, 200, 256}), {}, {}, true};
  for (int64_t axes = random.whole(1, 3), i = 0; i < axes; ++i) {
    s.small.push_back(random.whole(1, i + 1 == axes ? 20 : 5));
    const int64_t small = s.small.back();
    s.large.push_back(random.pick<int64_t>({small, 2 * small, random.whole(1, 3 * small)}));
  }
  s.small.back() += 1;
  s.large.back() = s.small.back() + random.whole(1, 2 * s.small.back());
  if (random.whole(0, 2) == 0) std::swap(s.small.back(), s.large.back());
  return resampling(s, {random.coin(), random.whole(0, 3) == 0 ? "nearest" : "linear",
                        random.pick<std::string>({"half_pixel", "align_corners"}),
                        random.pick({Dtype::f32, Dtype::bf16, Dtype::f16})});
}

TEST(resample_linear, results_are_the_references) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    Random random(seed);
    Problem p = random_resampling(random);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    if (!ResampleLinear::fits(p, Isa::avx512)) continue;
    ++taken;
    expect_rows_agree(p, random, {.tolerance_factor = 4, .at_least = 2, .target = {.isa = Isa::avx512, .threads = 3}});
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 120);
}

TEST(resample_linear, expressions_read_operands_of_any_shape) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    taken += expect_operands_of_any_shape(random_resampling(random), Isa::avx512, random, ResampleLinear::fits) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 20);
}

TEST(resample_linear, one_value_for_all_channels_is_read_once_for_all) {
  for (const bool backward : {false, true}) {
    Random random(1);
    Problem p = resampled(Dtype::f32, 32, {3, 4}, {6, 8}, backward);
    TensorDesc& source = p.in[backward ? 1 : 0];
    const TensorDesc places = dense_desc(Dtype::f32, {source.dims[0], source.dims[1], source.dims[2]});
    source.strides = places.strides;
    source.strides.push_back(0);
    EXPECT_FALSE(ResampleLinear::fits(p, Isa::avx512));
    for (const Isa isa : {Isa::avx2, Isa::avx512})
      if (isa <= machine_isa()) expect_rows_agree(p, random, {.tolerance_factor = 4, .target = {.isa = isa}});
  }
}

TEST(resample_linear, infinities_stay_where_they_are_read) {
  for (const char* coordinates : {"half_pixel", "align_corners"})
    for (const bool backward : {false, true})
      expect_infinities_where_they_are_read(
          resampling({2, 33, {4, 9}, {7, 17}, true}, {backward, "linear", coordinates}));
}

TEST(resample_linear, takes_linear_weights_and_gradients_channels_last_alone) {
  const auto fits = [](const Problem& p) { return ResampleLinear::fits(p, Isa::avx512); };
  const Problem p = resampled(Dtype::bf16, 64, {8, 8}, {16, 16});
  EXPECT_TRUE(fits(p));
  EXPECT_FALSE(ResampleLinear::fits(p, Isa::avx2));
  EXPECT_TRUE(fits(resampled(Dtype::f32, 16, {3, 4, 5}, {6, 8, 7})));
  EXPECT_TRUE(fits(resampled(Dtype::f32, 16, {16, 5}, {4, 7})));
  EXPECT_FALSE(fits(resampled(Dtype::f32, 15, {8, 8}, {16, 16})));  // few channels
  EXPECT_TRUE(fits(resampled(Dtype::f32, 64, {8, 16}, {16, 9})));   // downwards
  EXPECT_TRUE(fits(resampled(Dtype::f32, 64, {8, 16}, {16, 3})));   // past places of which nothing is taken
  EXPECT_FALSE(fits(resampled(Dtype::f32, 64, {8, 8}, {16, 8})));   // not along x
  EXPECT_TRUE(fits(resampled(Dtype::f32, 64, {8, 8}, {16, 16}, /*backward=*/true)));
  EXPECT_TRUE(fits(resampled(Dtype::f32, 64, {8, 16}, {16, 7}, /*backward=*/true)));
  EXPECT_FALSE(fits(resampled(Dtype::f32, 64, {8, 8}, {24, 16}, /*backward=*/true)));  // sums of many rows
  EXPECT_TRUE(fits(resampled(Dtype::f32, 64, {8, 8}, {16, 16}, /*backward=*/true, "nearest")));
  EXPECT_FALSE(fits(resampled(Dtype::f32, 64, {8, 8}, {16, 16}, /*backward=*/false, "nearest")));
  EXPECT_FALSE(fits(resampling({2, 64, {8, 8}, {16, 16}, false}, {})));
  Problem front = p;
  ExprBuilder b(front.front);
  front.front.result = b.apply(ExprOp::exp, b.load(0));
  EXPECT_FALSE(fits(front));
}

}  // namespace
}  // namespace partita::test
