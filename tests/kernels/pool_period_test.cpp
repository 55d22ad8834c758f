// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings whose windows may overlap, in both data formats: against the reference with ties and
// NaN, and the same bytes for all numbers of threads.
#include <gtest/gtest.h>

#include "kernels/jit/pool/backward/period.hpp"
#include "kernels/jit/pool/backward/plane_period.hpp"
#include "kernels/jit/pool/backward/window.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

WindowSizes random_sizes(Random& random, bool channel_last) {
  WindowSizes s;
  const bool flat = random.coin();
  const int64_t axes = flat ? 1 : random.whole(2, 3);
  s.batch = random.whole(1, 2);
  s.channels = channel_last ? random.pick<int64_t>({8, 13, 16, 24, 33, 40, 64}) : random.whole(2, 5);
  for (int64_t i = 0; i < axes; ++i) {
    const bool plane = axes < 3 || i > 0;  // the third axis has windows of one cell
    const int64_t kernel = plane ? random.whole(1, 5) : 1, dilation = plane ? random.whole(1, 2) : 1;
    const int64_t span = (kernel - 1) * dilation + 1;
    const bool last = i + 1 == axes;
    const int64_t stride = plane ? random.whole(1, 4) : 1;
    s.kernel.push_back(kernel);
    s.dilations.push_back(dilation);
    s.strides.push_back(stride);
    s.pads.push_back(plane ? random.whole(0, std::min<int64_t>(span - 1, 2)) : 0);
    const int64_t most = random.whole(0, 4) > 0 ? 60 : 150;  // windows along x: a few vectors of either size
    s.spatial.push_back(span + (last && !channel_last ? random.whole(8, most) * stride : random.whole(0, 9)));
  }
  return s;
}

bool fits(const Problem& p, bool channel_last) {
  return channel_last ? jit::PeriodPool::fits(p) : jit::PlanePeriodPool::fits(p, {.threads = 1});
}

TEST(pool_period, gradients_are_those_of_the_reference) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      int fitting = 0;
      constexpr uint64_t kSeeds = 150;
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Random random(seed);
        const Problem p = maximum_gradient(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
                                           random_sizes(random, channel_last), channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        fitting += fits(p, channel_last) && !jit::WindowPool::fits(p, {.isa = isa});
        expect_reference_bytes(p, random, {.isa = isa, .threads = 1});
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_GT(fitting, static_cast<int>(kSeeds) / 2);
    }
}

TEST(pool_period, expressions_are_computed_in_the_same_step) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (uint64_t seed = 1; seed <= 60; ++seed) {
        Random random(seed);
        const Problem p = maximum_gradient(Dtype::f32, random_sizes(random, channel_last), channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        expect_expressions_around(p, random, {.isa = isa, .threads = 1});
        if (testing::Test::HasFailure()) return;
      }
}

/// Elements of 16 bits are not converted for that.
TEST(pool_period, chosen_cells_are_those_of_the_reference) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (uint64_t seed = 1; seed <= 80; ++seed) {
        Random random(seed);
        WindowSizes sizes = random_sizes(random, channel_last);
        if (random.coin()) sizes.strides.back() = 2;
        const Problem p = maximum_gradient(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), sizes, channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        expect_choices_behind(p, random, {.isa = isa, .threads = 1});
        if (testing::Test::HasFailure()) return;
      }
}

TEST(pool_period, cells_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(12, [](Random& random, Dtype dtype, int64_t bytes) {
    WindowSizes s;
    const bool channel_last = random.coin();
    s.channels = channel_last ? random.pick<int64_t>({16, 32, 48, 64, 160}) : random.whole(2, 5);
    const int64_t width = channel_last ? 24 : random.pick<int64_t>({24, 64, 104, 112, 200});
    for (int i = 0; i < 2; ++i) {
      s.kernel.push_back(random.whole(2, 4));
      s.dilations.push_back(1);
      s.strides.push_back(random.whole(1, 2));
      s.pads.push_back(random.whole(0, 1));
      s.spatial.push_back(i == 0 ? 24 : width);
    }
    s.batch = bytes / (24 * width * s.channels * element_bytes(dtype)) + 2;
    return maximum_gradient(dtype, s, channel_last);
  });
}

TEST(pool_period, threads_change_no_byte) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(5);
      const Problem p = maximum_gradient(Dtype::f32, {1, 24, {61, 70}, {3, 5}, {2, 2}, {1, 1}, {1, 2}}, channel_last);
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      ASSERT_TRUE(fits(p, channel_last));
      expect_threads_change_no_byte(p, random, isa);
    }
}

}  // namespace
}  // namespace partita::test
