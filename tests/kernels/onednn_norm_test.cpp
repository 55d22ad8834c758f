// SPDX-License-Identifier: Apache-2.0
// The normalisations on oneDNN against the reference: optional ports, types of the vectors, both formats.
#include <gtest/gtest.h>

#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

struct Types {
  Dtype data, vectors;
};

constexpr Range kPositive{0.5, 2};
constexpr int64_t kSeeds = 40;

struct Batch {
  Dims dims;
  int64_t channels;
  bool channel_last;
};

Batch random_batch(Random& random, int64_t channel_factor = 1) {
  Batch batch{{}, channel_factor * random.pick<int64_t>({1, 2, 5, 16}), random.coin()};
  std::vector<int64_t> spatial;
  for (int64_t i = random.whole(1, 3); i > 0; --i) spatial.push_back(random.whole(1, 5));
  batch.dims = activation_dims(random.whole(2, 3), batch.channels, spatial, batch.channel_last);
  return batch;
}

void set_format(Problem& problem, const Batch& batch) {
  problem.attrs.set(Attr::data_format, std::string(batch.channel_last ? "NXC" : "NCX"));
  problem.attrs.set(Attr::epsilon, 0.01f);
}

class onednn_norm : public testing::TestWithParam<Types> {};

TEST_P(onednn_norm, batch_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 100; seed < 100 + kSeeds; ++seed) {
    Random random(seed);
    const Batch batch = random_batch(random);
    const TensorDesc vector = dense_desc(vectors, {batch.channels});
    Problem problem = problem_for(StepKind::batch_norm, OpKind::BatchNormForwardTraining);
    set_format(problem, batch);
    if (random.coin()) problem.attrs.set(Attr::momentum, 0.3f);
    problem.in = {any_desc(data, batch.dims, random), vector, vector};
    for (int64_t i = random.whole(0, 2); i > 0; --i) problem.in.push_back(vector);
    problem.out = {any_desc(data, batch.dims, random), vector, vector, vector, any_desc(vectors, vector.dims, random)};
    expect_rows_agree(problem, random, {.ranges = {{-1, 1}, {-1, 1}, kPositive, kPositive}, .tolerance_factor = 4});
    if (HasFailure()) return;
  }
}

TEST_P(onednn_norm, gradient_of_batch_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 200; seed < 200 + kSeeds; ++seed) {
    Random random(seed);
    const Batch batch = random_batch(random);
    const TensorDesc vector = dense_desc(vectors, {batch.channels});
    Problem problem = problem_for(StepKind::batch_norm_backward, OpKind::BatchNormTrainingBackward);
    set_format(problem, batch);
    problem.in = {any_desc(data, batch.dims, random), any_desc(data, batch.dims, random), vector, vector};
    if (random.coin()) problem.in.push_back(vector);
    problem.out = {any_desc(data, batch.dims, random)};
    for (int64_t i = random.whole(0, 2); i > 0; --i) problem.out.push_back(vector);
    const std::vector<Range> ranges = {{-1, 1}, {-1, 1}, {-0.1, 0.1}, kPositive, kPositive};
    expect_rows_agree(problem, random, {.ranges = ranges, .tolerance_factor = 8});
    if (HasFailure()) return;
  }
}

Dims random_rows(Random& random) {
  Dims dims;
  for (int64_t i = random.whole(0, 5); i > 0; --i) dims.push_back(random.whole(1, 3));
  dims.push_back(random.pick<int64_t>({1, 2, 7, 16, 33}));
  return dims;
}

Dims without_last(Dims dims) {
  dims.erase(dims.size() - 1);
  return dims;
}

TEST_P(onednn_norm, layer_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 300; seed < 300 + kSeeds; ++seed) {
    Random random(seed);
    const Dims dims = random_rows(random);
    const bool affine = random.coin(), statistics = random.coin();
    Problem problem = problem_for(StepKind::layer_norm, OpKind::LayerNorm);
    problem.attrs.set(Attr::epsilon, 0.01f);
    problem.attrs.set(Attr::begin_norm_axis, random.coin() ? int64_t{-1} : int64_t{dims.size() - 1});
    problem.attrs.set(Attr::use_affine, affine);
    problem.attrs.set(Attr::keep_stats, statistics);
    problem.in = {dense_desc(data, dims)};
    if (affine) problem.in.insert(problem.in.end(), 2, dense_desc(vectors, {dims.back()}));
    problem.out = {dense_desc(data, dims)};
    if (statistics) problem.out.insert(problem.out.end(), 2, dense_desc(vectors, without_last(dims)));
    expect_rows_agree(problem, random, {.tolerance_factor = 4});
    if (HasFailure()) return;
  }
}

TEST_P(onednn_norm, gradient_of_layer_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 400; seed < 400 + kSeeds; ++seed) {
    Random random(seed);
    const Dims dims = random_rows(random);
    const bool affine = random.coin();
    const TensorDesc statistic = dense_desc(vectors, without_last(dims)), vector = dense_desc(vectors, {dims.back()});
    Problem problem = problem_for(StepKind::layer_norm_backward, OpKind::LayerNormBackward);
    problem.attrs.set(Attr::epsilon, 0.01f);
    problem.attrs.set(Attr::begin_norm_axis, int64_t{-1});
    problem.attrs.set(Attr::use_affine, affine);
    problem.in = {dense_desc(data, dims), dense_desc(data, dims), statistic, statistic};
    problem.out = {dense_desc(data, dims)};
    if (affine) {
      problem.in.insert(problem.in.end(), 2, vector);
      problem.out.insert(problem.out.end(), 2, vector);
    }
    const std::vector<Range> ranges = {{-1, 1}, {-1, 1}, {-0.1, 0.1}, kPositive};
    expect_rows_agree(problem, random, {.ranges = ranges, .tolerance_factor = 8});
    if (HasFailure()) return;
  }
}

TEST_P(onednn_norm, group_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 500; seed < 500 + kSeeds; ++seed) {
    Random random(seed);
    const int64_t groups = random.whole(1, 3);
    const Batch batch = random_batch(random, groups);
    const bool affine = random.coin(), statistics = random.coin();
    Problem problem = problem_for(StepKind::group_norm, OpKind::GroupNorm);
    set_format(problem, batch);
    problem.attrs.set(Attr::groups, groups);
    problem.attrs.set(Attr::use_affine, affine);
    problem.attrs.set(Attr::keep_stats, statistics);
    problem.in = {any_desc(data, batch.dims, random)};
    if (affine) problem.in.insert(problem.in.end(), 2, dense_desc(vectors, {batch.channels}));
    problem.out = {any_desc(data, batch.dims, random)};
    if (statistics) problem.out.insert(problem.out.end(), 2, dense_desc(vectors, {batch.dims[0], groups}));
    expect_rows_agree(problem, random, {.tolerance_factor = 4});
    if (HasFailure()) return;
  }
}

TEST_P(onednn_norm, group_norm_without_spatial_axes_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 600; seed < 610; ++seed) {
    Random random(seed);
    const int64_t groups = random.whole(1, 3), channels = groups * random.pick<int64_t>({1, 2, 5, 16});
    const Dims dims = {random.whole(2, 3), channels};
    Problem problem = problem_for(StepKind::group_norm, OpKind::GroupNorm);
    set_format(problem, {dims, channels, random.coin()});
    problem.attrs.set(Attr::groups, groups);
    problem.attrs.set(Attr::keep_stats, true);
    problem.in = {any_desc(data, dims, random), dense_desc(vectors, {channels}), dense_desc(vectors, {channels})};
    problem.out = {any_desc(data, dims, random), dense_desc(vectors, {dims[0], groups}),
                   dense_desc(vectors, {dims[0], groups})};
    // oneDNN's rows need not take it.
    expect_rows_agree(problem, random, {.tolerance_factor = 4, .at_least = 0});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, onednn_norm,
                         testing::Values(Types{Dtype::f32, Dtype::f32}, Types{Dtype::bf16, Dtype::f32},
                                         Types{Dtype::f16, Dtype::f32}, Types{Dtype::bf16, Dtype::bf16}),
                         [](const auto& info) {
                           const Types types = info.param;
                           return std::string(name_of(types.data)) + "_" + std::string(name_of(types.vectors));
                         });

}  // namespace
}  // namespace partita::test
