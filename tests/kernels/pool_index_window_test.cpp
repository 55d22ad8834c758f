// SPDX-License-Identifier: Apache-2.0
// Maxima with indices read straight from the source, in both data formats: against the reference with ties, infinities
// and NaN; the same bytes for all numbers of threads, and past the caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/jit/pool/indices/index_window.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

struct Sizes {
  bool channel_last;
  int64_t batch, channels;
};

/// Windows that all have a cell, some of them over the border.
Geometry random_windows(Random& random, bool channel_last) {
  Geometry g;
  for (int64_t axes = random.whole(1, 3); axes > 0; --axes) {
    const int64_t kernel = random.whole(1, 3), dilation = random.pick<int64_t>({1, 1, 2}), stride = random.whole(1, 4);
    const int64_t span = (kernel - 1) * dilation + 1, room = random.whole(0, axes == 1 && !channel_last ? 60 : 5);
    const int64_t begin = random.whole(0, kernel / 2), end = random.whole(0, kernel / 2);
    const int64_t windows = (axes == 1 && !channel_last ? 8 : 1) + room;
    const int64_t covered = (windows - 1) * stride + span - begin - end;
    g.add({.wide = std::max(span, covered + random.whole(0, stride - 1)),
           .narrow = windows,
           .kernel = kernel,
           .stride = stride,
           .dilation = dilation,
           .begin = begin,
           .end = end});
  }
  return g;
}

Sizes random_sizes(Random& random) {
  const bool channel_last = random.coin();
  return {channel_last, random.whole(1, 2), channel_last ? random.pick<int64_t>({8, 13, 16, 32, 40, 70, 96}) : 3};
}

Problem problem_of(Dtype dtype, Dtype index, const Geometry& g, const Sizes& s) {
  Problem p = pool_problem({.op = OpKind::MaxPool,
                            .windows = g,
                            .channel_last = s.channel_last,
                            .dtype = dtype,
                            .batch = s.batch,
                            .channels = s.channels});
  p.out.push_back(dense_desc(index, p.out[0].dims));
  return p;
}

Problem random_problem(Random& random) {
  const Sizes s = random_sizes(random);
  const auto dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), index = random.pick({Dtype::s64, Dtype::s32});
  Problem p = problem_of(dtype, index, random_windows(random, s.channel_last), s);
  if (random.coin()) p.attrs.set(Attr::index_base, std::string(random.pick({"plane", "tensor"})));
  return p;
}

Buffer random_source(const TensorDesc& desc, Random& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  Buffer source = random_buffer(desc, random);
  if (random.coin())
    for (int64_t i = 0; i < elements(desc.dims); ++i)
      store_from_double(source.data(), desc.dtype, i, random.pick({-kInf, -kInf, kNan, kInf, -0.0f, 0.0f, 1.0f}));
  return source;
}

/// Two operands behind the maximum, one of them the same for all channels, and an additional result; both are f32.
void add_back(Problem& p, bool channel_last) {
  p.ports_in = 1;
  p.ports_out = 2;
  Dims one = p.out[0].dims;
  one[channel_last ? one.size() - 1 : 1] = 1;
  p.in.push_back(dense_desc(Dtype::f32, p.out[0].dims));
  TensorDesc repeated = dense_desc(p.in[0].dtype, one);
  repeated.dims = p.out[0].dims;
  repeated.strides[channel_last ? one.size() - 1 : 1] = 0;
  p.in.push_back(repeated);
  p.out[0] = dense_desc(Dtype::f32, p.out[0].dims);
  p.out.push_back(p.out[0]);
  ExprBuilder back(p.back);
  back.store(0, back.mul(back.skeleton(), back.load(1)));
  back.store(2, back.select(back.gt(back.load(2), back.skeleton()), back.load(2), back.skeleton()));
}

std::vector<Buffer> buffers(const Problem& p, Random& random) {
  std::vector<Buffer> in;
  in.push_back(random_source(p.in[0], random));
  for (size_t k = 1; k < p.in.size(); ++k) in.push_back(random_buffer(p.in[k], random));
  return in;
}

TEST(pool_index_window, maxima_and_indices_are_those_of_the_reference) {
  for (const Isa isa : generated_isas()) {
    int fitting = 0;
    constexpr uint64_t kSeeds = 250;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      const Problem p = random_problem(random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      const Target target{.isa = isa, .threads = 1};
      fitting += jit::IndexWindowPool::fits(p, target);
      const auto in = buffers(p, random);
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, target), expected = reference_results(p, in);
      for (size_t k = 0; k < 2; ++k) {
        ASSERT_EQ(difference(got[k], expected[k], 0), "") << "output " << k;
        ASSERT_EQ(damage(got[k]), "") << "output " << k;
      }
    }
    EXPECT_GT(fitting, static_cast<int>(kSeeds) * 3 / 4);
  }
}

TEST(pool_index_window, expressions_are_computed_in_the_same_step) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      const Sizes s = random_sizes(random);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const Problem plain = problem_of(dtype, Dtype::s64, random_windows(random, s.channel_last), s);
      Problem p = plain;
      add_back(p, s.channel_last);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      const Target target{.isa = isa, .threads = 1};
      EXPECT_TRUE(jit::IndexWindowPool::fits(p, target));
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      const auto pooled = reference_results(plain, in);
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, target);
      EXPECT_EQ(difference(got[1], pooled[1], 0), "");
      for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
        ASSERT_FLOAT_EQ(static_cast<float>(got[0].get(i)), static_cast<float>(pooled[0].get(i) * in[1].get(i)));
        ASSERT_EQ(got[2].get(i), std::max(pooled[0].get(i), in[2].get(i))) << "element " << i;
      }
    }
}

std::vector<GuardedMemory> results(const jit::IndexWindowPool& pool, const Problem& p, const std::vector<Buffer>& in) {
  std::vector<GuardedMemory> out;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const TensorDesc& desc : p.out)
    out.emplace_back((bytes_for(desc.dtype, elements(desc.dims)) + 63) / 64 * 64, 0xa5);
  for (const Buffer& buffer : in) sources.push_back(buffer.data());
  for (GuardedMemory& memory : out) targets.push_back(memory.data());
  EXPECT_TRUE(pool({sources, targets, nullptr}).ok());
  return out;
}

/// Rows of whole cache lines, of parts of them, and such as start anywhere; nothing behind the results is touched.
TEST(pool_index_window, what_goes_past_the_caches_is_the_same) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      Problem p = random_problem(random);
      if (random.coin()) add_back(p, p.attrs.is(Attr::data_format, "NXC"));
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      const Target target{.isa = isa, .threads = 1};
      if (!jit::IndexWindowPool::fits(p, target)) continue;
      const auto in = buffers(p, random);
      const auto kept = results(jit::IndexWindowPool(p, target, false), p, in);
      const auto streamed = results(jit::IndexWindowPool(p, target, true), p, in);
      for (size_t k = 0; k < p.out.size(); ++k)
        ASSERT_EQ(std::memcmp(kept[k].data(), streamed[k].data(), kept[k].size()), 0) << "output " << k;
    }
}

TEST(pool_index_window, threads_change_no_byte) {
  const Geometry g{{61, 75}, {31, 38}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {}};
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(5);
      const Problem p = problem_of(Dtype::f32, Dtype::s64, g, {channel_last, 1, 24});
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      ASSERT_TRUE(jit::IndexWindowPool::fits(p, {.isa = isa, .threads = 1}));
      const auto in = buffers(p, random);
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto alone = run_kernel(*row, p, in, Target{.isa = isa, .threads = 1});
      for (const int threads : {2, 3, 6})
        EXPECT_EQ(byte_difference(run_kernel(*row, p, in, Target{.isa = isa, .threads = threads}), alone), "")
            << threads;
    }
}

/// Windows behind the source, many taps, few neighbours, something to compute before the search.
TEST(pool_index_window, other_problems_go_another_way) {
  const Geometry fitting{{20, 40}, {10, 20}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {}};
  const Target target{.isa = Isa::avx2, .threads = 1};
  const auto fits = [&](const Geometry& g, const Sizes& s) {
    return jit::IndexWindowPool::fits(problem_of(Dtype::f32, Dtype::s64, g, s), target);
  };
  for (const bool channel_last : {false, true}) {
    EXPECT_TRUE(fits(fitting, {channel_last, 1, 8}));
    Geometry behind = fitting, large = fitting;
    behind.narrow[0] = 11;
    EXPECT_FALSE(fits(behind, {channel_last, 1, 8}));
    large.kernel = {7, 7};
    large.narrow = {7, 17};
    EXPECT_FALSE(fits(large, {channel_last, 1, 8}));
    Problem p = problem_of(Dtype::f32, Dtype::s64, fitting, {channel_last, 1, 8});
    ExprBuilder front(p.front);
    p.front.result = front.mul(front.load(0), front.load(0));
    EXPECT_FALSE(jit::IndexWindowPool::fits(p, target));
  }
  EXPECT_FALSE(fits(fitting, {true, 1, 7}));
  Geometry narrow = fitting;
  narrow.wide[1] = 14;
  narrow.narrow[1] = 7;
  EXPECT_FALSE(fits(narrow, {false, 1, 8}));
}

}  // namespace
}  // namespace partita::test
