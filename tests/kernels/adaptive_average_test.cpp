// SPDX-License-Identifier: Apache-2.0
// Gradients of adaptive averages by the kernels of average gradients: against the reference, alone and between
// expressions, with the same bits for any number of threads and for stores past the caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/jit/pool/backward/backward.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

using List = std::vector<int64_t>;

struct Sizes {
  int64_t batch, channels;
  List wide, narrow;
  bool channel_last;
  Dtype dtype;
};

Problem gradient(const Sizes& s) {
  Problem p = problem_for(StepKind::resample, OpKind::AdaptiveAvgPoolBackward);
  p.attrs.set(Attr::data_format, std::string(s.channel_last ? "NXC" : "NCX"));
  p.in = {dense_desc(s.dtype, activation_dims(s.batch, s.channels, s.narrow, s.channel_last))};
  p.out = {dense_desc(s.dtype, activation_dims(s.batch, s.channels, s.wide, s.channel_last))};
  return p;
}

/// Along x no more windows than cells, along the others any number; rows may be long.
Sizes random_sizes(Random& random) {
  Sizes s{random.whole(1, 2),
          random.pick<int64_t>({1, 3, 8, 21, 40}),
          {},
          {},
          random.coin(),
          random.pick({Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16})};
  const int64_t axes = random.whole(1, 3), longest = axes == 1 ? 300 : random.pick<int64_t>({7, 40});
  while (std::ssize(s.wide) < axes) {
    const bool along_x = std::ssize(s.wide) + 1 == axes;
    s.wide.push_back(along_x ? random.whole(1, longest) : random.whole(2, 5));
    s.narrow.push_back(random.whole(1, along_x ? s.wide.back() : 7));
  }
  return s;
}

bool made_by_averages(const Problem& p, Isa isa) { return jit::fits_adaptive_average(p, {.isa = isa}); }

TEST(adaptive_average, gradients_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      const Problem p = gradient(random_sizes(random));
      EXPECT_TRUE(made_by_averages(p, isa)) << text_of(p);
      expect_rows_agree(p, random, {.tolerance_factor = 2, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

/// What repeats along x, or lies apart elsewhere, is taken; what lies apart in a row is not.
TEST(adaptive_average, gradients_of_other_strides_agree_with_the_reference) {
  int made = 0;
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      Random random(seed);
      Problem p = gradient(random_sizes(random));
      for (auto* side : {&p.in, &p.out})
        for (TensorDesc& desc : *side) desc = any_desc(desc.dtype, desc.dims, random);
      made += made_by_averages(p, isa) ? 1 : 0;
      expect_rows_agree(p, random, {.tolerance_factor = 2, .at_least = 0, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
  EXPECT_GE(made, static_cast<int>(5 * generated_isas().size()));
}

TEST(adaptive_average, more_windows_than_cells_along_rows_are_resampled) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      EXPECT_TRUE(made_by_averages(gradient({1, 16, {3, 8}, {5, 7}, channel_last, Dtype::f32}), isa));
      EXPECT_FALSE(made_by_averages(gradient({1, 16, {5, 7}, {3, 8}, channel_last, Dtype::f32}), isa));
    }
}

Buffer f32_buffer(const TensorDesc& desc) {
  Buffer b = nan_buffer(desc);
  std::memset(b.data(), 0, b.bytes.size());
  return b;
}

/// front: gradient * factor;  back: out0 = max(value + bias, 0), out1 = value. The bias repeats along some axes.
TEST(adaptive_average, gradients_between_expressions_agree_with_single_operators) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Random random(seed);
      Sizes s = random_sizes(random);
      s.dtype = Dtype::f32;
      const Problem plain = gradient(s);
      Problem p = plain;
      TensorDesc factor = p.in[0], bias = p.out[0];
      if (random.coin()) factor.strides = Dims(factor.dims.size(), 0);
      const int channel = s.channel_last ? bias.dims.size() - 1 : 1;
      if (const int64_t kind = random.whole(0, 2); kind > 0) {
        bias.strides = Dims(bias.dims.size(), 0);
        if (kind == 2) bias.strides[channel] = 1;
      }
      ExprBuilder f(p.front);
      p.front.result = f.mul(f.load(0), f.load(1));
      ExprBuilder b(p.back);
      const auto value = b.skeleton();
      b.store(0, b.max(b.add(value, b.load(2)), b.constant(0)));
      b.store(1, value);
      p.in.push_back(factor);
      p.in.push_back(bias);
      p.out.push_back(p.out[0]);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      ASSERT_TRUE(made_by_averages(p, isa));

      std::vector<Buffer> in, products;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      products.push_back(f32_buffer(plain.in[0]));
      for (int64_t i = 0; i < elements(plain.in[0].dims); ++i)
        store_from_double(products[0].data(), Dtype::f32, i, in[0].get(i) * in[1].get(i));
      const std::vector<Buffer> made = reference_results(plain, products);
      Buffer relu = f32_buffer(plain.out[0]);
      for (int64_t i = 0; i < elements(plain.out[0].dims); ++i)
        store_from_double(relu.data(), Dtype::f32, i, std::max(made[0].get(i) + in[2].get(i), 0.0));
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto one = run_kernel(*row, p, in, 1);
      EXPECT_EQ(difference(one[0], relu, 2 * tolerance_of(Dtype::f32)), "");
      EXPECT_EQ(difference(one[1], made[0], 2 * tolerance_of(Dtype::f32)), "");
      for (const int threads : {2, 3}) EXPECT_EQ(byte_difference(run_kernel(*row, p, in, threads), one), "");
      if (HasFailure()) return;
    }
}

/// A cell must not see infinities of windows that lie over its neighbours alone.
TEST(adaptive_average, infinities_stay_under_their_windows) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      const Problem p = gradient({1, 16, {9, 50}, {4, 19}, channel_last, Dtype::f32});
      std::vector<Buffer> in;
      in.push_back(f32_buffer(p.in[0]));
      for (int64_t i = 0; i < elements(p.in[0].dims); ++i)
        store_from_double(in[0].data(), Dtype::f32, i, i % 37 == 0 ? INFINITY : 1);
      ASSERT_TRUE(made_by_averages(p, isa));
      const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
      EXPECT_EQ(difference(got[0], reference_results(p, in)[0], tolerance_of(Dtype::f32)), "");
    }
}

TEST(adaptive_average, large_gradients_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(8, [](Random& random, Dtype dtype, int64_t bytes) {
    Sizes s = random_sizes(random);
    s.dtype = dtype;
    s.channels = random.pick<int64_t>({16, 24, 37, 64});
    s.batch = bytes / (elements(Dims(s.wide)) * s.channels * element_bytes(s.dtype)) + 2;
    const Problem p = gradient(s);
    for (const Isa isa : generated_isas()) EXPECT_TRUE(made_by_averages(p, isa));
    return p;
  });
}

}  // namespace
}  // namespace partita::test
