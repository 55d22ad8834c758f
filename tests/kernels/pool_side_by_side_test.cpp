// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima with narrow rows, channels first, of which a vector has several planes: against the reference
// with ties and NaN, and the same bytes for all numbers of threads and past the caches; what is left alone.
#include <gtest/gtest.h>

#include "kernels/jit/pool/backward/backward.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

constexpr int64_t kLarge = int64_t{1} << 40;

/// Up to 16 windows along x, as many planes as two threads need, and some that are left over.
WindowSizes random_narrow(Random& random) {
  WindowSizes s;
  s.batch = random.whole(1, 3);
  s.channels = random.pick<int64_t>({32, 33, 35, 40, 64});
  const bool volume = random.whole(0, 4) == 0;
  if (volume) {
    s.kernel.push_back(1);
    s.dilations.push_back(1);
    s.strides.push_back(1);
    s.pads.push_back(0);
    s.spatial.push_back(random.whole(1, 3));
  }
  for (const bool along_x : {false, true}) {
    const int64_t kernel = random.whole(1, 4), dilation = random.whole(0, 4) > 0 ? 1 : 2;
    const int64_t span = (kernel - 1) * dilation + 1, stride = random.whole(1, along_x ? 2 : 3);
    s.kernel.push_back(kernel);
    s.dilations.push_back(dilation);
    s.strides.push_back(stride);
    s.pads.push_back(random.whole(0, std::min<int64_t>(span - 1, 2)));
    s.spatial.push_back(span + random.whole(0, along_x ? 15 : 7) * stride + random.whole(0, stride - 1));
  }
  return s;
}

Problem random_problem(Random& random) {
  return maximum_gradient(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), random_narrow(random), false);
}

bool is_side_by_side(const Problem& p) { return jit::is_side_by_side(p, {.isa = machine_isa(), .threads = 2}); }

/// What `expect` says of two threads' gradients that `make` draws from seeds 1 to `seeds`, half of them past the
/// caches.
template <class Make, class Expect>
void expect_of_seeds(uint64_t seeds, const Make& make, const Expect& expect) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    Problem p = make(random);
    if (random.coin()) p.result_bytes = kLarge;
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    expect(p, random, Target{.isa = Isa::avx512, .threads = 2});
    if (testing::Test::HasFailure()) return;
  }
}

TEST(pool_side_by_side, gradients_are_those_of_the_reference) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  int fitting = 0;
  constexpr uint64_t kSeeds = 400;
  expect_of_seeds(kSeeds, random_problem, [&](const Problem& p, Random& random, const Target& target) {
    fitting += is_side_by_side(p);
    expect_reference_bytes(p, random, target);
  });
  EXPECT_GT(fitting, static_cast<int>(kSeeds) / 3);
}

TEST(pool_side_by_side, expressions_are_computed_in_the_same_step) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  const auto make = [](Random& random) { return maximum_gradient(Dtype::f32, random_narrow(random), false); };
  expect_of_seeds(100, make, expect_expressions_around);
}

TEST(pool_side_by_side, chosen_cells_are_those_of_the_reference) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  expect_of_seeds(150, random_problem, expect_choices_behind);
}

TEST(pool_side_by_side, threads_change_no_byte) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const int64_t bytes : {int64_t{0}, kLarge}) {
      Random random(7);
      Problem p = maximum_gradient(dtype, {3, 101, {14, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 0}}, false);
      p.result_bytes = bytes;
      SCOPED_TRACE(text_of(p));
      ASSERT_TRUE(is_side_by_side(p));
      expect_threads_change_no_byte(p, random, Isa::avx512);
    }
}

TEST(pool_side_by_side, leaves_others_alone) {
  if (!has_avx512()) GTEST_SKIP() << "without AVX-512";
  const WindowSizes narrow{2, 64, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  const auto with = [&](const auto& change) {
    WindowSizes sizes = narrow;
    change(sizes);
    return maximum_gradient(Dtype::f32, sizes, false);
  };
  const auto nothing = [](WindowSizes&) {};
  ASSERT_TRUE(is_side_by_side(with(nothing)));
  EXPECT_FALSE(is_side_by_side(maximum_gradient(Dtype::f32, narrow, true))) << "channels last";
  EXPECT_FALSE(is_side_by_side(with([](WindowSizes& s) { s.channels = 4; }))) << "few planes";
  EXPECT_FALSE(is_side_by_side(with([](WindowSizes& s) { s.spatial[1] = 40; }))) << "wide rows";
  EXPECT_FALSE(is_side_by_side(with([](WindowSizes& s) { s.strides[1] = 3; }))) << "windows three cells apart";
  EXPECT_FALSE(is_side_by_side(with([](WindowSizes& s) {
    s.spatial[0] = s.spatial[1] = 3, s.pads = {0, 0};
  }))) << "whole planes";
  EXPECT_FALSE(is_side_by_side(maximum_gradient(Dtype::f8_e5m2, narrow, false))) << "bytes";
  Problem apart = with(nothing);
  apart.out[0].strides[0] += 8;
  EXPECT_FALSE(is_side_by_side(apart)) << "images lie apart";
  EXPECT_FALSE(jit::is_side_by_side(with(nothing), {.isa = Isa::avx2, .threads = 2}));
  // Half as wide elements: twice as many windows.
  const WindowSizes wider{2, 64, {28, 28}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  EXPECT_TRUE(is_side_by_side(maximum_gradient(Dtype::bf16, wider, false)));
  EXPECT_FALSE(is_side_by_side(maximum_gradient(Dtype::f32, wider, false)));
}

}  // namespace
}  // namespace partita::test
