// SPDX-License-Identifier: Apache-2.0
// Interpolation and the gradients of interpolation and PReLU on oneDNN against the reference.
#include <gtest/gtest.h>

#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

struct Sizes {
  Dims small, large;
  std::vector<int64_t> large_spatial;
  bool channel_last;
};

Sizes random_sizes(Random& random) {
  Sizes sizes{{}, {}, {}, random.coin()};
  const int64_t batch = random.whole(1, 2), channels = random.pick<int64_t>({1, 3, 16});
  std::vector<int64_t> spatial;
  for (int64_t i = random.whole(1, 3); i > 0; --i) {
    spatial.push_back(random.whole(1, 6));
    sizes.large_spatial.push_back(random.whole(sizes.large_spatial.empty() ? 2 : 1, 9));
  }
  sizes.small = activation_dims(batch, channels, spatial, sizes.channel_last);
  sizes.large = activation_dims(batch, channels, sizes.large_spatial, sizes.channel_last);
  return sizes;
}

Problem random_resampling(Random& random, StepKind step, OpKind op, const Sizes& sizes) {
  Problem problem = problem_for(step, op);
  problem.attrs.set(Attr::data_format, std::string(sizes.channel_last ? "NXC" : "NCX"));
  problem.attrs.set(Attr::mode, std::string(random.coin() ? "nearest" : "linear"));
  problem.attrs.set(Attr::coordinate_transformation_mode, std::string("half_pixel"));
  problem.attrs.set(Attr::sizes, sizes.large_spatial);
  return problem;
}

class onednn_resample : public testing::TestWithParam<Dtype> {};

TEST_P(onednn_resample, interpolation_agrees_with_the_reference) {
  for (uint64_t seed = 100; seed < 160; ++seed) {
    Random random(seed);
    const Sizes sizes = random_sizes(random);
    Problem problem = random_resampling(random, StepKind::resample, OpKind::Interpolate, sizes);
    problem.in = {any_desc(GetParam(), sizes.small, random)};
    problem.out = {any_desc(GetParam(), sizes.large, random)};
    expect_rows_agree(problem, random);
    if (HasFailure()) return;
  }
}

TEST_P(onednn_resample, gradient_agrees_with_the_reference) {
  for (uint64_t seed = 200; seed < 260; ++seed) {
    Random random(seed);
    const Sizes sizes = random_sizes(random);
    Problem problem = random_resampling(random, StepKind::resample_backward, OpKind::InterpolateBackward, sizes);
    problem.in = {any_desc(GetParam(), sizes.small, random), any_desc(GetParam(), sizes.large, random)};
    problem.out = {any_desc(GetParam(), sizes.small, random)};
    expect_rows_agree(problem, random);
    if (HasFailure()) return;
  }
}

TEST_P(onednn_resample, gradients_of_prelu_agree_with_the_reference) {
  for (uint64_t seed = 300; seed < 360; ++seed) {
    Random random(seed);
    const Sizes sizes = random_sizes(random);
    const Dims& dims = sizes.large;
    const int64_t channels = dims[sizes.channel_last ? dims.size() - 1 : 1];
    Dims slope = random.coin() ? Dims{channels} : dims;
    if (slope.size() > 1 && random.coin()) slope[static_cast<int>(random.whole(0, dims.size() - 1))] = 1;
    Problem problem = problem_for(StepKind::prelu_backward, OpKind::PReLUBackward);
    problem.attrs.set(Attr::data_format, std::string(sizes.channel_last ? "NXC" : "NCX"));
    problem.in = {any_desc(GetParam(), dims, random), any_desc(GetParam(), slope, random),
                  any_desc(GetParam(), dims, random)};
    problem.out = {any_desc(GetParam(), dims, random), any_desc(GetParam(), slope, random)};
    const bool common = slope.size() == 1 || slope == dims;
    expect_rows_agree(problem, random, {.tolerance_factor = 4, .at_least = common ? 1 : 0});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, onednn_resample, testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace partita::test
