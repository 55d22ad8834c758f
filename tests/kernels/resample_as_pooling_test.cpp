// SPDX-License-Identifier: Apache-2.0
// Interpolations that poolings do: which these are, and that they compute what the reference does.
#include <gtest/gtest.h>

#include "kernels/jit/resample/as_pooling.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/resampling.hpp"

namespace partita::test {
namespace {

const Target kTarget{.isa = machine_isa(), .threads = 2};

bool becomes(StepKind step, const Problem& p, const Target& target = kTarget) {
  const auto pooling = jit::as_pooling(p, target);
  return pooling && pooling->step == step;
}
bool is_average(const Problem& p) { return becomes(StepKind::pool_forward, p); }
bool is_gradient(const Problem& p) { return becomes(StepKind::pool_backward, p); }

/// From the source to the result.
Problem shrunk(const std::vector<int64_t>& from, const std::vector<int64_t>& to, const char* mode = "linear",
               const char* coordinates = "half_pixel") {
  return resampling({2, 3, from, to, false}, {.mode = mode, .coordinates = coordinates});
}

TEST(resample_as_pooling, means_of_neighbours_are_averages) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      Resampled s{random.whole(1, 3), random.pick<int64_t>({1, 3, 16, 20, 40}), {}, {}, random.coin()};
      for (int64_t axes = random.whole(1, 3); axes > 0; --axes) {
        s.large.push_back(random.whole(1, axes == 1 ? 20 : 6));
        s.small.push_back(s.large.back() * random.whole(1, 2));
      }
      const Problem p = resampling(s, {.dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16})});
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      const StepKind step =
          s.small == s.large ? StepKind::pool_backward : StepKind::pool_forward;  // copies are repeats
      EXPECT_TRUE(becomes(step, p, {.isa = isa, .threads = 2}));
      expect_rows_agree(p, random, {.target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

TEST(resample_as_pooling, other_shares_are_not_those_of_averages) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  EXPECT_TRUE(is_average(shrunk({8, 8}, {4, 8})));
  EXPECT_FALSE(is_average(shrunk({8, 8}, {4, 4}, "nearest")));
  EXPECT_FALSE(is_average(shrunk({8, 8}, {4, 4}, "linear", "align_corners")));
  EXPECT_FALSE(is_average(shrunk({8, 9}, {4, 4}))) << "no whole windows";
  EXPECT_FALSE(is_average(shrunk({9, 9}, {3, 3}))) << "one of three";
  EXPECT_FALSE(is_average(shrunk({16, 8}, {4, 4}))) << "the middle two of four";
  EXPECT_FALSE(is_average(shrunk({4, 8}, {8, 4}))) << "more places along an axis";
}

TEST(resample_as_pooling, sources_repeated_by_whole_factors_are_gradients) {
  if (!generates_code()) GTEST_SKIP() << "without generated code";
  EXPECT_TRUE(is_gradient(shrunk({4, 4}, {8, 12}, "nearest")));
  EXPECT_FALSE(is_gradient(shrunk({4, 4}, {8, 13}, "nearest")));
  EXPECT_FALSE(is_gradient(shrunk({4, 4}, {8, 8})));
  EXPECT_FALSE(is_gradient(shrunk({8, 8}, {4, 4}, "nearest")));
}

}  // namespace
}  // namespace partita::test
