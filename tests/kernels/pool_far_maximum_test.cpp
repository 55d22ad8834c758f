// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima over windows that reach far over each other: searched along x, then over rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "kernels/jit/pool/backward/far_maximum.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

/// Of rows, planes and volumes; windows go beyond the source on any side, and may have no cells between them.
WindowSizes random_sizes(Random& random) {
  WindowSizes s{random.whole(1, 2), random.pick<int64_t>({1, 3, 8, 16, 17, 35}), {}, {}, {}, {}, {}};
  const int64_t axes = random.pick<int64_t>({1, 2, 2, 3});
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t kernel = axes == 1 ? random.whole(30, 70) : axes == 2 ? random.whole(5, 13) : random.whole(2, 6);
    const int64_t dilation = random.whole(0, 3) == 0 ? 2 : 1, span = (kernel - 1) * dilation + 1;
    const int64_t pad = random.whole(0, std::min<int64_t>(span / 2, span - 1));
    s.kernel.push_back(kernel);
    s.dilations.push_back(dilation);
    s.strides.push_back(random.whole(1, 3));
    s.pads.push_back(pad);
    s.spatial.push_back(span + random.whole(0, axes == 3 ? 3 : 12) - random.whole(0, pad));
  }
  return s;
}

void for_random_gradients(uint64_t seeds, const std::vector<Dtype>& types,
                          const std::function<void(const Problem&, Random&, const Target&)>& expect) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      uint64_t fitting = 0;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        Random random(seed);
        const auto type = static_cast<size_t>(random.whole(0, std::ssize(types) - 1));
        const Problem p = maximum_gradient(types[type], random_sizes(random), channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        const Target target{.isa = isa, .threads = 1};
        fitting += jit::FarMaximumPool::fits(p, target) ? 1 : 0;
        expect(p, random, target);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_GT(fitting, seeds / 2);
    }
}

TEST(pool_far_maximum, gradients_are_those_of_the_reference) {
  for_random_gradients(100, {Dtype::f32, Dtype::bf16, Dtype::f16}, expect_reference_bytes);
}

TEST(pool_far_maximum, expressions_are_computed_in_the_same_step) {
  for_random_gradients(40, {Dtype::f32}, expect_expressions_around);
}

TEST(pool_far_maximum, threads_change_no_byte) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(5);
      const Problem p = maximum_gradient(Dtype::f32, {3, 40, {21, 20}, {9, 9}, {1, 1}, {1, 1}, {4, 4}}, channel_last);
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      ASSERT_TRUE(jit::FarMaximumPool::fits(p, {.isa = isa}));
      expect_threads_change_no_byte(p, random, isa);
    }
}

/// Gradients of nothing are zeros, which other kernels write.
TEST(pool_far_maximum, no_windows_are_left_to_others) {
  for (const bool channel_last : {false, true}) {
    Problem p = maximum_gradient(Dtype::f32, {1, 3, {8, 8}, {8, 8}, {1, 1}, {1, 1}, {4, 4}}, channel_last);
    for (int axis : {1, 2}) p.in[1].dims[channel_last ? axis : axis + 1] = 0;
    for (const Isa isa : generated_isas()) {
      Random random(1);
      EXPECT_FALSE(jit::FarMaximumPool::fits(p, {.isa = isa}));
      expect_reference_bytes(p, random, {.isa = isa, .threads = 1});
    }
  }
}

TEST(pool_far_maximum, windows_of_volumes_are_far_sooner_than_those_of_planes) {
  const auto fits = [](const std::vector<int64_t>& kernel, int64_t stride, bool channel_last) {
    const size_t axes = kernel.size();
    const std::vector<int64_t> cells(axes, 9), strides(axes, stride), ones(axes, 1), zeros(axes, 0);
    return jit::FarMaximumPool::fits(
        maximum_gradient(Dtype::f32, {1, 16, cells, kernel, strides, ones, zeros}, channel_last),
        {.isa = machine_isa()});
  };
  for (const bool channel_last : {false, true}) {
    EXPECT_TRUE(fits({3, 3, 3}, 1, channel_last));
    EXPECT_FALSE(fits({3, 3, 3}, 2, channel_last));
  }
  EXPECT_FALSE(fits({5, 5}, 1, true));
}

/// One window over a source that is longer than its kernels spell out elsewhere.
TEST(pool_far_maximum, windows_of_any_length) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(7);
      const Problem p = maximum_gradient(Dtype::f32, {1, 5, {700}, {600}, {3}, {1}, {300}}, channel_last);
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      ASSERT_TRUE(jit::FarMaximumPool::fits(p, {.isa = isa}));
      expect_reference_bytes(p, random, {.isa = isa, .threads = 1});
    }
}

}  // namespace
}  // namespace partita::test
