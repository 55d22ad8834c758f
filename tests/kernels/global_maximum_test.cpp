// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima over whole planes: small planes in one piece, longer ones by tiles and blocks, channel-last by
// columns; windows may be larger than the planes.
#include "kernels/jit/rows/global_maximum.hpp"

#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

/// Channel-last, few cells are for other kernels.
WindowSizes random_planes(Random& random, bool channel_last) {
  WindowSizes s;
  s.batch = random.whole(1, 3);
  s.channels = random.whole(1, 37);
  const int64_t axes = random.whole(1, 3);
  int64_t cells = 1;
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t most = axes == 1 ? (random.coin() ? 150 : 1200) : axes == 2 ? 30 : 9;
    const bool last = i + 1 == axes;
    const int64_t extent = random.whole(channel_last && last ? 20 / cells + 1 : 1, std::max<int64_t>(most, 202));
    const int64_t size = channel_last && last ? extent : std::min(extent, most);
    cells *= size;
    s.spatial.push_back(size);
    s.pads.push_back(random.whole(0, 2));
    s.kernel.push_back(size + 2 * s.pads.back());
    s.strides.push_back(random.whole(1, 3));
    s.dilations.push_back(1);
  }
  return s;
}

TEST(global_maximum, gradients_are_those_of_the_reference) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (uint64_t seed = 1; seed <= 80; ++seed) {
        Random random(seed);
        const Problem p = maximum_gradient(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
                                           random_planes(random, channel_last), channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        const Target target{.isa = isa, .threads = 1};
        ASSERT_EQ(jit::refuse_global_maximum(p, target), nullptr);
        expect_reference_bytes(p, random, target);
        if (testing::Test::HasFailure()) return;
      }
}

/// Vectors of planes read gradients that lie next to each other; each plane by itself reads one from anywhere.
TEST(global_maximum, gradients_may_lie_apart) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(3);
      Problem p = maximum_gradient(Dtype::f32, {2, 5, {15, 16}, {15, 16}, {1, 1}, {1, 1}, {0, 0}}, channel_last);
      for (int64_t& stride : p.in[1].strides) stride *= 3;
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      const Target target{.isa = isa, .threads = 1};
      EXPECT_EQ(jit::refuse_global_maximum(p, target) != nullptr, channel_last);
      expect_rows_agree(p, random, {.target = target});
    }
}

TEST(global_maximum, tensors_may_lie_in_any_order) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (uint64_t seed = 1; seed <= 60; ++seed) {
        Random random(seed);
        const WindowSizes sizes = random_planes(random, false);
        Problem p = maximum_gradient(Dtype::f32, sizes, channel_last);
        for (TensorDesc* desc : {&p.in[0], &p.in[1], &p.out[0]})
          *desc = random.coin() ? any_desc(desc->dtype, desc->dims, random)
                                : other_format_desc(desc->dtype, desc->dims, channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        expect_rows_agree(p, random, {.target = {.isa = isa, .threads = 1}});
        if (testing::Test::HasFailure()) return;
      }
}

TEST(global_maximum, planes_may_have_blocks_of_cells) {
  for (const Isa isa : generated_isas()) {
    Random random(11);
    const Problem p = maximum_gradient(Dtype::f32, {1, 3, {41, 500}, {41, 500}, {1, 1}, {1, 1}, {0, 0}}, false);
    ASSERT_EQ(jit::refuse_global_maximum(p, {.isa = isa}), nullptr);
    expect_reference_bytes(p, random, {.isa = isa, .threads = 4});
    expect_threads_change_no_byte(p, random, isa);
  }
}

TEST(global_maximum, expressions_are_computed_in_the_same_step) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (uint64_t seed = 1; seed <= 40; ++seed) {
        Random random(seed);
        const Problem p = maximum_gradient(Dtype::f32, random_planes(random, channel_last), channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        expect_expressions_around(p, random, {.isa = isa, .threads = 1});
        if (testing::Test::HasFailure()) return;
      }
}

TEST(global_maximum, threads_change_no_byte) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(5);
      const Problem p =
          maximum_gradient(Dtype::bf16, {5, 67, {15, 16}, {15, 16}, {1, 1}, {1, 1}, {0, 0}}, channel_last);
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      expect_threads_change_no_byte(p, random, isa);
    }
}

TEST(global_maximum, leaves_other_windows_alone) {
  const auto refused = [](const WindowSizes& sizes) {
    return jit::refuse_global_maximum(maximum_gradient(Dtype::f32, sizes, false), {.isa = machine_isa()}) != nullptr;
  };
  EXPECT_FALSE(refused({2, 3, {5, 6}, {5, 6}, {1, 1}, {1, 1}, {0, 0}}));
  EXPECT_TRUE(refused({2, 3, {5, 6}, {4, 6}, {2, 1}, {1, 1}, {0, 0}}));  // a row is in no window
  EXPECT_TRUE(refused({2, 3, {5, 6}, {3, 6}, {2, 1}, {1, 1}, {0, 0}}));  // two windows
  EXPECT_TRUE(refused({2, 3, {5, 6}, {3, 6}, {9, 1}, {2, 1}, {0, 0}}));  // every second row
}

}  // namespace
}  // namespace partita::test
