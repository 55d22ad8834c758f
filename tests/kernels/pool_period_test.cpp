// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings whose windows may overlap, in both data formats: against the reference with ties and
// NaN (gradients are small whole numbers, so that sums are exact), and the same bytes for all numbers of threads.
#include "kernels/jit/pool_period.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/jit/pool_plane_period.hpp"
#include "kernels/jit/pool_window.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

struct Sizes {
  int64_t batch, channels;
  std::vector<int64_t> spatial, kernel, strides, dilations, pads;
};

Problem problem_of(Dtype dtype, const Sizes& s, bool channel_last) {
  Geometry g;
  g.wide = s.spatial;
  g.kernel = s.kernel;
  g.strides = s.strides;
  g.dilations = s.dilations;
  g.pads_begin = g.pads_end = s.pads;
  for (size_t i = 0; i < s.spatial.size(); ++i)
    g.narrow.push_back((s.spatial[i] + 2 * s.pads[i] - (s.kernel[i] - 1) * s.dilations[i] - 1) / s.strides[i] + 1);
  Problem p = problem_for(StepKind::max_pool_backward, OpKind::MaxPoolBackward);
  p.attrs = window_attrs(g, channel_last);
  p.attrs.set(Attr::kernel, g.kernel);
  const auto tensor = [&](const std::vector<int64_t>& spatial) {
    return dense_desc(dtype, activation_dims(s.batch, s.channels, spatial, channel_last));
  };
  p.in = {tensor(g.wide), tensor(g.narrow)};
  p.out = {tensor(g.wide)};
  return p;
}

Sizes random_sizes(Random& random, bool channel_last) {
  Sizes s;
  const bool flat = random.coin();
  const int64_t axes = flat ? 1 : random.whole(2, 3);
  s.batch = random.whole(1, 2);
  s.channels = channel_last ? random.pick<int64_t>({8, 13, 16, 24, 33, 40}) : random.whole(2, 5);
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
    s.spatial.push_back(span + (last && !channel_last ? random.whole(8, 60) * stride : random.whole(0, 9)));
  }
  return s;
}

std::vector<Buffer> buffers(const Problem& p, Random& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Buffer> in;
  in.push_back(random_buffer(p.in[0], random));
  in.push_back(nan_buffer(p.in[1]));
  if (random.coin())
    for (int64_t i = 0; i < elements(p.in[0].dims); ++i)
      store_from_double(in[0].data(), p.in[0].dtype, i,
                        random.pick({-kInf, -kInf, kNan, kInf, -0.0f, 0.0f, 1.0f, 1.0f, 2.0f}));
  for (int64_t i = 0; i < elements(p.in[1].dims); ++i)
    store_from_double(in[1].data(), p.in[1].dtype, i, static_cast<double>(random.whole(-3, 3)));
  return in;
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
        const Problem p = problem_of(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
                                     random_sizes(random, channel_last), channel_last);
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        fitting += fits(p, channel_last) && !jit::WindowPool::fits(p, {.isa = isa});
        const auto in = buffers(p, random);
        const Kernel* row = generated_row(p.step, isa);
        ASSERT_NE(row, nullptr);
        const Target target{.isa = isa, .threads = 1};
        ASSERT_EQ(byte_difference(run_kernel(*row, p, in, target), reference_results(p, in)), "");
      }
      EXPECT_GT(fitting, static_cast<int>(kSeeds) / 2);
    }
}

/// A second operand before and behind, and an additional result.
TEST(pool_period, expressions_are_computed_in_the_same_step) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (uint64_t seed = 1; seed <= 60; ++seed) {
        Random random(seed);
        const Problem plain = problem_of(Dtype::f32, random_sizes(random, channel_last), channel_last);
        Problem p = plain;
        SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
        p.ports_in = 2;
        p.ports_out = 1;
        p.in.push_back(plain.in[1]);
        p.in.push_back(dense_desc(Dtype::bf16, plain.in[0].dims));
        p.out.push_back(dense_desc(Dtype::bf16, plain.out[0].dims));
        ExprBuilder front(p.front);
        p.front.result = front.mul(front.load(1), front.load(2));
        ExprBuilder back(p.back);
        const auto kept = back.select(back.gt(back.load(3), back.load(0)), back.skeleton(), back.constant(0));
        back.store(0, kept);
        back.store(1, kept);
        std::vector<Buffer> in = buffers(plain, random);
        in.push_back(nan_buffer(p.in[2]));
        for (int64_t i = 0; i < elements(p.in[2].dims); ++i)
          store_from_double(in[2].data(), Dtype::f32, i, static_cast<double>(random.whole(-2, 2)));
        in.push_back(random_buffer(p.in[3], random));
        std::vector<Buffer> prepared;
        for (size_t k : {0, 1}) {
          prepared.push_back(nan_buffer(plain.in[k]));
          for (int64_t i = 0; i < elements(plain.in[k].dims); ++i)
            store_from_double(prepared[k].data(), Dtype::f32, i, k == 0 ? in[0].get(i) : in[1].get(i) * in[2].get(i));
        }
        const auto pooled = reference_results(plain, prepared);
        const Kernel* row = generated_row(p.step, isa);
        ASSERT_NE(row, nullptr);
        const auto got = run_kernel(*row, p, in, Target{.isa = isa, .threads = 1});
        for (int64_t i = 0; i < elements(plain.out[0].dims); ++i) {
          const double value = in[3].get(i) > in[0].get(i) ? pooled[0].get(i) : 0;
          ASSERT_EQ(got[0].get(i), value) << "element " << i;
          ASSERT_EQ(got[1].get(i), value) << "element " << i;
        }
      }
}

TEST(pool_period, threads_change_no_byte) {
  const Sizes sizes{1, 24, {61, 70}, {3, 5}, {2, 2}, {1, 1}, {1, 2}};
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true}) {
      Random random(5);
      const Problem p = problem_of(Dtype::f32, sizes, channel_last);
      SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
      ASSERT_TRUE(fits(p, channel_last));
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto alone = run_kernel(*row, p, in, Target{.isa = isa, .threads = 1});
      for (const int threads : {2, 3, 6})
        EXPECT_EQ(byte_difference(run_kernel(*row, p, in, Target{.isa = isa, .threads = threads}), alone), "")
            << threads;
    }
}

}  // namespace
}  // namespace partita::test
