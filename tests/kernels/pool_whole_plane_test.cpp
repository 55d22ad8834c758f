// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima over whole planes that are found by comparing integers, whatever bits the source holds; through
// the caches and past them.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/jit/pool/backward/whole_plane.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

Problem plane_gradient(Dtype dtype, int64_t batch, int64_t channels, const std::vector<int64_t>& plane,
                       bool channel_last) {
  const std::vector<int64_t> ones(plane.size(), 1), none(plane.size(), 0);
  return maximum_gradient(dtype, {batch, channels, plane, plane, ones, ones, none}, channel_last);
}

Problem random_planes(Random& random) {
  const bool channel_last = random.coin();
  const int64_t channels = channel_last ? random.pick<int64_t>({1, 31, 32, 37, 128, 256, 300, 513, 768})
                                        : random.pick<int64_t>({1, 15, 32, 33, 64, 100});
  std::vector<int64_t> plane{random.whole(1, channel_last ? 90 : 64)};
  if (random.coin()) plane = {random.whole(1, 8), random.whole(1, 8)};
  Problem p = plane_gradient(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), random.whole(1, 3), channels, plane,
                             channel_last);
  if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
  return p;
}

/// Most are ordinary numbers, of few different sizes now and then; of the others each kind comes soon.
void fill_with_any_bits(Buffer& buffer, const TensorDesc& desc, Random& random) {
  const int64_t few = random.coin() ? 3 : 0xffff;
  for (int64_t i = 0; i < elements(desc.dims); ++i) {
    int64_t high = few < 0xffff ? 0x3f80 + random.whole(0, few) : random.whole(0, few);
    if (random.whole(0, 60) == 0)
      high = random.pick<int64_t>(
          {0, 0x8000, 1, 0x8001, 0x7c00, 0xfc00, 0x7c01, 0xfe00, 0x7f80, 0xff80, 0x7f81, 0xff81, 0x7fff, 0xffff});
    if (bits_of(desc.dtype) == 16) {
      const auto half = static_cast<uint16_t>(high);
      std::memcpy(static_cast<std::byte*>(buffer.data()) + 2 * i, &half, sizeof half);
    } else {
      const auto word = static_cast<uint32_t>(high << 16) | static_cast<uint32_t>(random.whole(0, 1));
      std::memcpy(static_cast<std::byte*>(buffer.data()) + 4 * i, &word, sizeof word);
    }
  }
}

/// `apart`: results begin so many bytes behind a cache line.
void expect_reference(const Problem& p, Random& random, int threads, size_t apart) {
  const Target target{.isa = Isa::avx512, .threads = threads};
  std::vector<Buffer> in = maximum_inputs(p, random);
  fill_with_any_bits(in[0], p.in[0], random);
  const auto expected = reference_results(p, in);

  const auto bytes = static_cast<size_t>(bytes_for(p.out[0].dtype, elements(p.out[0].dims)));
  const jit::WholePlanePool pool(p, target);
  GuardedMemory out((bytes + apart + 63) / 64 * 64, 0xa5), scratch((pool.scratch_bytes() + 63) / 64 * 64, 0xff);
  const ThreadScope team(threads);
  const std::vector<const void*> sources = {in[0].data(), in[1].data()};
  const std::vector<void*> targets = {static_cast<std::byte*>(out.data()) + apart};
  ASSERT_TRUE(pool({sources, targets, scratch.data()}).ok());
  const auto* got = static_cast<const std::byte*>(targets[0]);
  for (size_t at = 0; at < bytes; ++at)
    ASSERT_EQ(got[at], static_cast<const std::byte*>(expected[0].data())[at]) << "byte " << at;
  for (const std::byte* behind = got + bytes; behind < static_cast<std::byte*>(out.data()) + out.size(); ++behind)
    ASSERT_EQ(*behind, std::byte{0xa5});
}

TEST(pool_whole_plane, gradients_are_those_of_the_reference) {
  if (machine_isa() < Isa::avx512) GTEST_SKIP() << "the machine has no AVX-512";
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    Random random(seed);
    const Problem p = random_planes(random);
    const int threads = static_cast<int>(random.whole(1, 3));
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p), ", ", threads, " threads"));
    ASSERT_TRUE(jit::WholePlanePool::fits(p, {.isa = Isa::avx512}));
    expect_reference(p, random, threads, random.coin() ? 0 : 8);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(pool_whole_plane, the_first_of_equal_maxima_wins) {
  if (machine_isa() < Isa::avx512) GTEST_SKIP() << "the machine has no AVX-512";
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<float, float>> equal = {{-kInf, -kInf}, {kInf, kInf},  {-0.0f, 0.0f}, {0.0f, -0.0f},
                                                      {kNan, kInf},   {-kNan, kNan}, {kNan, -kNan}};
  for (const bool channel_last : {false, true})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (const auto& [first, second] : equal) {
        const Problem p = plane_gradient(dtype, 1, 1, {40}, channel_last);
        SCOPED_TRACE(str(text_of(p), ": ", first, " and ", second));
        Random random(1);
        std::vector<Buffer> in = maximum_inputs(p, random);
        for (int64_t i = 0; i < 40; ++i)
          store_from_double(in[0].data(), dtype, i, i == 11 ? first : i == 35 ? second : -kInf);
        store_from_double(in[1].data(), dtype, 0, 3);
        const int64_t winner = first == -kInf ? 0 : 11;
        const auto out = run_kernel(*generated_row(p.step, Isa::avx512), p, in, {.isa = Isa::avx512, .threads = 1});
        for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(out[0].get(i), i == winner ? 3 : 0) << "cell " << i;
      }
}

TEST(pool_whole_plane, leaves_other_gradients_alone) {
  const Target target{.isa = Isa::avx512};
  const auto fits = [&](const Problem& p) { return jit::WholePlanePool::fits(p, target); };
  const Problem planes = plane_gradient(Dtype::bf16, 2, 3, {7, 7}, false);
  const Problem columns = plane_gradient(Dtype::bf16, 2, 3, {7, 7}, true);
  EXPECT_TRUE(fits(planes));
  EXPECT_TRUE(fits(columns));
  EXPECT_FALSE(jit::WholePlanePool::fits(planes, {.isa = Isa::avx2}));
  EXPECT_FALSE(fits(plane_gradient(Dtype::bf16, 2, 3, {5, 13}, false)));  // more cells than registers hold
  EXPECT_TRUE(fits(plane_gradient(Dtype::bf16, 2, 3, {5, 13}, true)));

  Problem computes = planes;
  ExprBuilder back(computes.back);
  back.store(0, back.add(back.skeleton(), back.constant(1)));
  EXPECT_FALSE(fits(computes));
  Problem mixed = planes;
  mixed.out[0].dtype = Dtype::f32;
  EXPECT_FALSE(fits(mixed));
  for (const bool channel_last : {false, true})
    for (const size_t port : {0, 1}) {
      Problem apart = channel_last ? columns : planes;
      apart.in[port].strides[channel_last ? 3 : 1] *= 2;  // of channels
      EXPECT_FALSE(fits(apart)) << "input " << port << (channel_last ? ", channels last" : "");
    }
}

}  // namespace
}  // namespace partita::test
