// SPDX-License-Identifier: Apache-2.0
// Channel-last linear interpolation and its gradient that read each place once for a row of results: which problems
// they take, and their results against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/jit/resample/linear.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

using jit::ResampleLinear;

Problem interpolation(Dtype dtype, int64_t channels, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                      const char* coordinates = "half_pixel") {
  Problem p = problem_for(StepKind::resample, OpKind::Interpolate);
  p.attrs.set(Attr::data_format, std::string("NXC"));
  p.attrs.set(Attr::mode, std::string("linear"));
  p.attrs.set(Attr::coordinate_transformation_mode, std::string(coordinates));
  p.attrs.set(Attr::sizes, to);
  p.in = {dense_desc(dtype, activation_dims(2, channels, from, true))};
  p.out = {dense_desc(dtype, activation_dims(2, channels, to, true))};
  return p;
}

Problem gradient_of(const Problem& interpolation) {
  Problem p = problem_for(StepKind::resample_backward, OpKind::InterpolateBackward);
  p.attrs = interpolation.attrs;
  p.in = {interpolation.in[0], interpolation.out[0]};
  p.out = {interpolation.in[0]};
  return p;
}

/// Up along x, anywhere along the other axes, by whole factors or others.
Problem random_interpolation(Random& random) {
  std::vector<int64_t> from, to;
  for (int64_t axes = random.whole(1, 3), i = 0; i < axes; ++i) {
    from.push_back(random.whole(1, i + 1 == axes ? 20 : 5));
    const int64_t twice = 2 * from.back();
    to.push_back(random.pick<int64_t>({from.back(), twice, random.whole(1, 3 * from.back())}));
  }
  from.back() += 1;
  to.back() = from.back() + random.whole(1, 2 * from.back());
  return interpolation(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
                       random.pick<int64_t>({16, 17, 32, 40, 64, 65, 128, 130, 200, 256}), from, to,
                       random.coin() ? "half_pixel" : "align_corners");
}

TEST(resample_linear, results_are_the_references) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  int taken = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    Random random(seed);
    Problem p = random_interpolation(random);
    if (random.coin()) p = gradient_of(p);
    if (random.whole(0, 3) == 0) p.attrs.set(Attr::mode, std::string("nearest"));
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    if (!ResampleLinear::fits(p, Isa::avx512)) continue;
    ++taken;
    expect_rows_agree(p, random, {.tolerance_factor = 4, .at_least = 2, .target = {.isa = Isa::avx512, .threads = 3}});
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 120);
}

/// Max(result + operand, 0), and the result itself; the operand has an element a channel, a place or a result.
TEST(resample_linear, expressions_read_operands_of_any_shape) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "no AVX-512";
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Problem p = random_interpolation(random);
    if (random.coin()) p = gradient_of(p);
    const Problem plain = p;
    TensorDesc operand = dense_desc(random.pick({Dtype::f32, Dtype::bf16}), p.out[0].dims);
    for (int d = 0; d < operand.dims.size(); ++d)
      if (random.coin()) operand.strides[d] = 0;
    p.in.push_back(operand);
    p.out.push_back(dense_desc(Dtype::f32, p.out[0].dims));
    ExprBuilder b(p.back);
    const auto result = b.skeleton();
    b.store(0, b.max(b.add(result, b.load(static_cast<int>(plain.in.size()))), b.constant(0)));
    b.store(1, result);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    if (!ResampleLinear::fits(p, Isa::avx512)) continue;
    std::vector<Buffer> in;
    for (const TensorDesc& desc : plain.in) in.push_back(random_buffer(desc, random));
    Problem exact = plain;
    exact.out[0].dtype = Dtype::f32;
    const auto expected = reference_results(exact, in);
    in.push_back(random_buffer(operand, random));
    const auto got = run_kernel(*generated_row(p.step, Isa::avx512), p, in, 2);
    EXPECT_EQ(difference(got[1], expected[0], 4 * tolerance_of(Dtype::f32)), "");
    for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
      const Dims at = coordinates(i, operand.dims);
      int64_t place = operand.offset;
      for (int d = 0; d < at.size(); ++d) place += at[d] * operand.strides[d];
      const double sum = expected[0].get(i) + load_as_double(in.back().data(), operand.dtype, place);
      ASSERT_NEAR(got[0].get(i), std::max(sum, 0.0), 2 * tolerance_of(p.out[0].dtype)) << "element " << i;
    }
    if (HasFailure()) return;
  }
}

/// A place that has fewer taps than its neighbours must not see their infinities.
TEST(resample_linear, infinities_stay_where_they_are_read) {
  for (const char* coordinates : {"half_pixel", "align_corners"})
    for (const bool gradient : {false, true}) {
      Problem p = interpolation(Dtype::f32, 33, {4, 9}, {7, 17}, coordinates);
      if (gradient) p = gradient_of(p);
      Random random(7);
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      auto* data = reinterpret_cast<float*>(in.back().bytes.data());
      for (int64_t i = 0; i < elements(in.back().desc.dims); i += 37) data[i] = INFINITY;
      const auto expected = reference_results(p, in);
      for (const Isa isa : generated_isas())
        EXPECT_EQ(difference(run_kernel(*generated_row(p.step, isa), p, in, 2)[0], expected[0], 2e-4), "");
    }
}

TEST(resample_linear, takes_linear_weights_and_gradients_upwards_channels_last_alone) {
  const Problem p = interpolation(Dtype::bf16, 64, {8, 8}, {16, 16});
  EXPECT_TRUE(ResampleLinear::fits(p, Isa::avx512));
  EXPECT_TRUE(ResampleLinear::fits(gradient_of(p), Isa::avx512));
  EXPECT_FALSE(ResampleLinear::fits(gradient_of(interpolation(Dtype::f32, 64, {8, 16}, {16, 8})), Isa::avx512));
  EXPECT_FALSE(ResampleLinear::fits(gradient_of(interpolation(Dtype::f32, 64, {8, 8}, {24, 16})), Isa::avx512));
  EXPECT_FALSE(ResampleLinear::fits(p, Isa::avx2));
  EXPECT_TRUE(ResampleLinear::fits(interpolation(Dtype::f32, 16, {3, 4, 5}, {6, 8, 7}), Isa::avx512));
  EXPECT_TRUE(ResampleLinear::fits(interpolation(Dtype::f32, 16, {16, 5}, {4, 7}), Isa::avx512));
  EXPECT_FALSE(ResampleLinear::fits(interpolation(Dtype::f32, 15, {8, 8}, {16, 16}), Isa::avx512));  // few channels
  EXPECT_FALSE(ResampleLinear::fits(interpolation(Dtype::f32, 64, {8, 16}, {16, 8}), Isa::avx512));  // downwards
  EXPECT_FALSE(ResampleLinear::fits(interpolation(Dtype::f32, 64, {8, 8}, {16, 8}), Isa::avx512));   // not along x
  Problem nearest = p;
  nearest.attrs.set(Attr::mode, std::string("nearest"));
  EXPECT_FALSE(ResampleLinear::fits(nearest, Isa::avx512));
  EXPECT_TRUE(ResampleLinear::fits(gradient_of(nearest), Isa::avx512));
  Problem first = p;
  first.attrs.set(Attr::data_format, std::string("NCX"));
  first.in = {dense_desc(Dtype::f32, {2, 64, 8, 8})};
  first.out = {dense_desc(Dtype::f32, {2, 64, 16, 16})};
  EXPECT_FALSE(ResampleLinear::fits(first, Isa::avx512));
  Problem front = p;
  ExprBuilder b(front.front);
  front.front.result = b.apply(ExprOp::exp, b.load(0));
  EXPECT_FALSE(ResampleLinear::fits(front, Isa::avx512));
}

}  // namespace
}  // namespace partita::test
