// SPDX-License-Identifier: Apache-2.0
// Poolings on oneDNN (and every other row) against the reference.
#include <gtest/gtest.h>

#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

struct Pool {
  Geometry geometry;
  Problem problem;
  TensorDesc wide, narrow;
};

Pool random_pool(Random& random, Dtype dtype, OpKind op) {
  const bool dilated = op == OpKind::MaxPool || op == OpKind::MaxPoolBackward;
  const bool round_up = random.coin(), channel_last = random.coin(), scattered = random.whole(0, 2) == 0;
  Pool pool;
  pool.geometry = random_geometry(random, {.dilated = dilated, .round_up = round_up});
  const int64_t batch = random.whole(1, 2), channels = random.pick<int64_t>({1, 3, 16});
  const auto desc = [&](const std::vector<int64_t>& spatial) {
    const Dims dims = activation_dims(batch, channels, spatial, channel_last);
    return scattered ? scattered_desc(dtype, dims, random) : dense_desc(dtype, dims);
  };
  pool.wide = desc(pool.geometry.wide);
  pool.narrow = desc(pool.geometry.narrow);
  pool.problem = pool_without_tensors(
      {.op = op, .windows = pool.geometry, .channel_last = channel_last, .exclude_pad = random.coin()});
  if (op == OpKind::MaxPool || op == OpKind::AvgPool) {
    pool.problem.attrs.set(Attr::rounding_type, std::string(round_up ? "ceil" : "floor"));
  }
  return pool;
}

void check(Dtype dtype, uint64_t first_seed, OpKind op, const std::function<void(Pool&)>& connect) {
  for (uint64_t seed = first_seed; seed < first_seed + 40; ++seed) {
    Random random(seed);
    Pool pool = random_pool(random, dtype, op);
    connect(pool);
    expect_rows_agree(pool.problem, random);
    if (testing::Test::HasFailure()) return;
  }
}

class onednn_pool : public testing::TestWithParam<Dtype> {};

TEST_P(onednn_pool, maximum_agrees_with_the_reference) {
  check(GetParam(), 100, OpKind::MaxPool, [](Pool& pool) {
    pool.problem.in = {pool.wide};
    pool.problem.out = {pool.narrow};
  });
}

TEST_P(onednn_pool, average_agrees_with_the_reference) {
  check(GetParam(), 200, OpKind::AvgPool, [](Pool& pool) {
    pool.problem.in = {pool.wide};
    pool.problem.out = {pool.narrow};
  });
}

TEST_P(onednn_pool, gradient_of_the_average_agrees_with_the_reference) {
  check(GetParam(), 300, OpKind::AvgPoolBackward, [](Pool& pool) {
    pool.problem.in = {pool.narrow};
    pool.problem.out = {pool.wide};
  });
}

TEST_P(onednn_pool, gradient_of_the_maximum_agrees_with_the_reference) {
  check(GetParam(), 400, OpKind::MaxPoolBackward, [](Pool& pool) {
    pool.problem.in = {pool.wide, pool.narrow};
    pool.problem.out = {pool.wide};
  });
}

INSTANTIATE_TEST_SUITE_P(types, onednn_pool, testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace partita::test
