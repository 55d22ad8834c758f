// SPDX-License-Identifier: Apache-2.0
// Convolutions on oneDNN against the reference: six operators, both formats, groups, dilations, asymmetric pads.
#include <gtest/gtest.h>

#include <dnnl.hpp>

#include "kernels/kernel.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

struct Conv {
  Geometry geometry;
  bool channel_last, spatial_first, scattered;
  int64_t batch, groups, wide_channels, narrow_channels;
  Dtype dtype;
};

Conv random_conv(Random& random, Dtype dtype) {
  Conv c{};
  c.geometry = random_geometry(random, {});
  for (size_t i = 0; i < c.geometry.narrow.size(); ++i)
    if (c.geometry.narrow[i] == 1 && random.coin()) c.geometry.strides[i] = 1 << 16;  // which means nothing
  c.channel_last = random.coin();
  c.spatial_first = random.coin();
  c.scattered = random.whole(0, 2) == 0;
  c.batch = random.whole(1, 2);
  c.groups = random.pick<int64_t>({1, 1, 2, 3});
  c.wide_channels = c.groups * random.pick<int64_t>({1, 2, 3, 16});
  c.narrow_channels = c.groups * random.pick<int64_t>({1, 2, 5, 16});
  c.dtype = dtype;
  return c;
}

TensorDesc desc(const Conv& c, const Dims& dims, Random& random) {
  return c.scattered ? scattered_desc(c.dtype, dims, random) : dense_desc(c.dtype, dims);
}

TensorDesc wide(const Conv& c, Random& random) {
  return desc(c, activation_dims(c.batch, c.wide_channels, c.geometry.wide, c.channel_last), random);
}

TensorDesc narrow(const Conv& c, Random& random) {
  return desc(c, activation_dims(c.batch, c.narrow_channels, c.geometry.narrow, c.channel_last), random);
}

TensorDesc weights(const Conv& c, Random& random) {
  Dims dims{std::span<const int64_t>(c.geometry.kernel)};
  const int at = c.spatial_first ? dims.size() : 0;
  dims.insert(at, c.spatial_first ? c.wide_channels / c.groups : c.narrow_channels);
  dims.insert(at + 1, c.spatial_first ? c.narrow_channels : c.wide_channels / c.groups);
  return desc(c, dims, random);
}

Problem problem_of(const Conv& c, StepKind step, OpKind op, bool transposed) {
  Problem problem = problem_for(step, op);
  problem.attrs = window_attrs(c.geometry, c.channel_last);
  problem.attrs.set(Attr::groups, c.groups);
  const char* format = transposed ? (c.spatial_first ? "XOI" : "IOX") : (c.spatial_first ? "XIO" : "OIX");
  problem.attrs.set(Attr::weights_format, std::string(format));
  return problem;
}

/// Windows along one axis over one channel a group.
Conv random_rows(Random& random, Dtype dtype) {
  Conv c = random_conv(random, dtype);
  while (c.geometry.kernel.size() != 1) c = random_conv(random, dtype);
  c.groups = c.wide_channels = c.narrow_channels = random.pick<int64_t>({2, 3, 16, 40});
  return c;
}

void check(Dtype dtype, uint64_t first_seed, const std::function<Problem(const Conv&, Random&)>& make) {
  for (const auto& random_of : {random_conv, random_rows})
    for (uint64_t seed = first_seed; seed < first_seed + 40; ++seed) {
      Random random(seed);
      const Conv c = random_of(random, dtype);
      expect_rows_agree(make(c, random), random, {.tolerance_factor = 2});
      if (testing::Test::HasFailure()) return;
    }
}

class onednn_convolution : public testing::TestWithParam<Dtype> {};

TEST_P(onednn_convolution, convolution_agrees_with_the_reference) {
  check(GetParam(), 100, [](const Conv& c, Random& random) {
    Problem p = problem_of(c, StepKind::convolution, OpKind::Convolution, false);
    p.in = {wide(c, random), weights(c, random)};
    if (random.coin()) p.in.push_back(dense_desc(c.dtype, {c.narrow_channels}));
    p.out = {narrow(c, random)};
    return p;
  });
}

TEST_P(onednn_convolution, gradient_of_the_data_agrees_with_the_reference) {
  check(GetParam(), 200, [](const Conv& c, Random& random) {
    Problem p = problem_of(c, StepKind::convolution_backward_data, OpKind::ConvolutionBackwardData, false);
    p.in = {narrow(c, random), weights(c, random)};
    p.out = {wide(c, random)};
    p.attrs.set(Attr::output_padding, c.geometry.leftover);
    if (random.coin()) p.in.push_back(dense_desc(Dtype::s32, {p.out[0].dims.size()}));
    return p;
  });
}

TEST_P(onednn_convolution, gradient_of_the_weights_agrees_with_the_reference) {
  check(GetParam(), 300, [](const Conv& c, Random& random) {
    Problem p = problem_of(c, StepKind::convolution_backward_weights, OpKind::ConvolutionBackwardWeights, false);
    p.in = {wide(c, random), narrow(c, random)};
    p.out = {weights(c, random)};
    return p;
  });
}

TEST_P(onednn_convolution, transposed_convolution_agrees_with_the_reference) {
  check(GetParam(), 400, [](const Conv& c, Random& random) {
    Problem p = problem_of(c, StepKind::convolution_backward_data, OpKind::ConvTranspose, true);
    p.in = {narrow(c, random), weights(c, random)};
    if (random.coin()) p.in.push_back(dense_desc(c.dtype, {c.wide_channels}));
    p.out = {wide(c, random)};
    p.attrs.set(Attr::output_padding, c.geometry.leftover);
    return p;
  });
}

TEST_P(onednn_convolution, gradient_of_the_transposed_data_agrees_with_the_reference) {
  check(GetParam(), 500, [](const Conv& c, Random& random) {
    Problem p = problem_of(c, StepKind::convolution, OpKind::ConvTransposeBackwardData, true);
    p.in = {wide(c, random), weights(c, random)};
    p.out = {narrow(c, random)};
    return p;
  });
}

TEST_P(onednn_convolution, gradient_of_the_transposed_weights_agrees_with_the_reference) {
  check(GetParam(), 600, [](const Conv& c, Random& random) {
    Problem p = problem_of(c, StepKind::convolution_backward_weights, OpKind::ConvTransposeBackwardWeights, true);
    p.in = {narrow(c, random), wide(c, random)};
    p.out = {weights(c, random)};
    return p;
  });
}

/// Whether the primitive of 16 bits is declined for its speed.
bool leaves_to_f32(const Conv& c, StepKind step, OpKind op) {
  Random random(1);
  Problem p = problem_of(c, step, op, false);
  const bool of_data = step == StepKind::convolution_backward_data;
  p.in = {of_data ? narrow(c, random) : wide(c, random), of_data ? weights(c, random) : narrow(c, random)};
  p.out = {of_data ? wide(c, random) : weights(c, random)};
  const char* reason = kernels_for(step)[0].refuse(p, {});
  return reason && std::string_view(reason) == "groups of so few channels take longer in this type than in f32";
}

TEST(onednn_convolution_groups, of_few_channels_run_in_f32) {
  // What is slow is code for these instructions; other machines have none for bf16, or another.
  const bool has_slow_code = dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_bf16;
  Conv c{};
  c.geometry = geometry_of({14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1});
  c.batch = 1, c.groups = 8, c.dtype = Dtype::bf16;
  for (const bool channel_last : {false, true})
    for (const int64_t channels : {2, 16}) {
      c.channel_last = channel_last, c.wide_channels = c.narrow_channels = channels * c.groups;
      SCOPED_TRACE(testing::Message() << channels << " channels, last: " << channel_last);
      const bool few = channels == 2 && has_slow_code;
      EXPECT_EQ(leaves_to_f32(c, StepKind::convolution_backward_data, OpKind::ConvolutionBackwardData), few);
      EXPECT_EQ(leaves_to_f32(c, StepKind::convolution_backward_weights, OpKind::ConvolutionBackwardWeights), few);
      c.dtype = Dtype::f32;
      EXPECT_FALSE(leaves_to_f32(c, StepKind::convolution_backward_data, OpKind::ConvolutionBackwardData));
      c.dtype = Dtype::bf16;
    }
}

INSTANTIATE_TEST_SUITE_P(types, onednn_convolution, testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace partita::test
