// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings whose windows cover each cell once: against the reference, with ties and NaN, and with
// expressions around them against the same problem without.
#include "kernels/jit/pool_window.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

Problem whole_windows(Dtype dtype, Random& random) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t kernel = random.whole(1, axes == 1 ? 6 : axes == 2 ? 4 : 2), narrow = random.whole(1, 5);
    g.wide.push_back(narrow * kernel);
    g.narrow.push_back(narrow);
    g.kernel.push_back(kernel);
    g.strides.push_back(kernel);
    g.dilations.push_back(1);
    g.pads_begin.push_back(0);
    g.pads_end.push_back(0);
  }
  Problem p = problem_for(StepKind::max_pool_backward, OpKind::MaxPoolBackward);
  p.attrs = window_attrs(g, true);
  p.attrs.set(Attr::kernel, g.kernel);
  const int64_t batch = random.whole(1, 3), channels = random.pick<int64_t>({8, 13, 16, 24, 31, 32, 40, 70});
  const auto tensor = [&](const std::vector<int64_t>& spatial) {
    return dense_desc(dtype, activation_dims(batch, channels, spatial, true));
  };
  p.in = {tensor(g.wide), tensor(g.narrow)};
  p.out = {tensor(g.wide)};
  return p;
}

TEST(pool_window, gradients_are_those_of_the_reference) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      const Problem p = whole_windows(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      ASSERT_TRUE(jit::WindowPool::fits(p));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      in.push_back(random_buffer(p.in[1], random));
      if (random.coin())
        for (int64_t i = 0; i < elements(p.in[0].dims); ++i)
          store_from_double(in[0].data(), p.in[0].dtype, i, random.pick({-kInf, -kInf, kNan, kInf, 0.0f, 0.0f, 1.0f}));
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(byte_difference(run_kernel(*row, p, in, 2), reference_results(p, in)), "");
      if (HasFailure()) return;
    }
}

/// front: the gradient times an operand; back: a second operand decides what stays, which is stored twice.
TEST(pool_window, expressions_are_computed_in_the_same_step) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      const Problem plain = whole_windows(Dtype::f32, random);
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
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      std::vector<Buffer> prepared;
      prepared.push_back(nan_buffer(plain.in[0]));
      for (int64_t i = 0; i < elements(plain.in[0].dims); ++i)
        store_from_double(prepared[0].data(), Dtype::f32, i, in[0].get(i));
      prepared.push_back(nan_buffer(plain.in[1]));
      for (int64_t i = 0; i < elements(plain.in[1].dims); ++i)
        store_from_double(prepared[1].data(), Dtype::f32, i, static_cast<float>(in[1].get(i) * in[2].get(i)));
      const auto pooled = reference_results(plain, prepared);
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, 2);
      for (int64_t i = 0; i < elements(plain.out[0].dims); ++i) {
        const double value = in[3].get(i) > in[0].get(i) ? pooled[0].get(i) : 0;
        ASSERT_EQ(got[0].get(i), value) << "element " << i;
        ASSERT_NEAR(got[1].get(i), value, std::abs(value) / 128) << "element " << i;
      }
    }
}

/// Windows that overlap, leave cells out or hang over go another way.
TEST(pool_window, other_windows_do_not_fit) {
  Random random(7);
  Problem p = whole_windows(Dtype::f32, random);
  const Problem whole = p;
  const size_t axes = static_cast<size_t>(p.in[0].dims.size()) - 2;
  ASSERT_TRUE(jit::WindowPool::fits(p));
  for (const Attr attr : {Attr::kernel, Attr::strides, Attr::pads_begin}) {
    p = whole;
    std::vector<int64_t> list(axes);
    for (size_t i = 0; i < axes; ++i) {
      const Dims given = p.attrs.dims(attr);
      list[i] = given[static_cast<int>(i)] + 1;
    }
    p.attrs.set(attr, list);
    EXPECT_FALSE(jit::WindowPool::fits(p)) << static_cast<int>(attr);
  }
}

}  // namespace
}  // namespace partita::test
