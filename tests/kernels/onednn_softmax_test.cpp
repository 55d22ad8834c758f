// SPDX-License-Identifier: Apache-2.0
// SoftMax, LogSoftmax and their gradients on oneDNN against the reference.
#include <gtest/gtest.h>

#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

struct Types {
  Dtype src, dst;
};

Dims random_dims(Random& random) {
  Dims dims;
  for (int64_t i = random.whole(1, 5); i > 0; --i) dims.push_back(random.pick<int64_t>({1, 2, 3, 7, 19}));
  return dims;
}

Problem random_softmax(Random& random, StepKind step, OpKind op, const Dims& dims) {
  Problem problem = problem_for(step, op);
  problem.attrs.set(Attr::axis, random.whole(-dims.size(), dims.size() - 1));
  if (op == OpKind::SoftMax) problem.attrs.set(Attr::mode, std::string("none"));
  return problem;
}

class onednn_softmax : public testing::TestWithParam<Types> {};

TEST_P(onednn_softmax, forward_agrees_with_the_reference) {
  const auto [src, dst] = GetParam();
  for (uint64_t seed = 100; seed < 160; ++seed) {
    Random random(seed);
    const Dims dims = random_dims(random);
    const bool log = src == dst && random.coin();
    Problem problem = random_softmax(random, StepKind::softmax, log ? OpKind::LogSoftmax : OpKind::SoftMax, dims);
    problem.in = {any_desc(src, dims, random)};
    problem.out = {any_desc(dst, dims, random)};
    expect_rows_agree(problem, random, {.ranges = {{-5, 5}}});
    if (HasFailure()) return;
  }
}

TEST_P(onednn_softmax, gradient_agrees_with_the_reference) {
  const auto [src, dst] = GetParam();
  for (uint64_t seed = 200; seed < 260; ++seed) {
    Random random(seed);
    const Dims dims = random_dims(random);
    const bool log = src == dst && random.coin();
    Problem problem = random_softmax(random, StepKind::softmax_backward,
                                     log ? OpKind::LogSoftmaxBackward : OpKind::SoftMaxBackward, dims);
    problem.in = {any_desc(src, dims, random), any_desc(src, dims, random)};
    problem.out = {any_desc(dst, dims, random)};
    expect_rows_agree(problem, random, {.ranges = {{-1, 1}, log ? Range{-5, 0} : Range{0, 0.1}}});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, onednn_softmax,
                         testing::Values(Types{Dtype::f32, Dtype::f32}, Types{Dtype::bf16, Dtype::bf16},
                                         Types{Dtype::f16, Dtype::f16}, Types{Dtype::bf16, Dtype::f32},
                                         Types{Dtype::f16, Dtype::f32}),
                         [](const auto& info) {
                           return std::string(name_of(info.param.src)) + "_" + std::string(name_of(info.param.dst));
                         });

TEST(onednn_softmax_rows, decline_what_onednn_cannot_do) {
  Random random(1);
  Problem problem = problem_for(StepKind::softmax, OpKind::SoftMax);
  problem.attrs.set(Attr::axis, int64_t{1});
  problem.attrs.set(Attr::mode, std::string("inf_as_zero"));
  problem.in = problem.out = {dense_desc(Dtype::f32, {2, 3})};
  Result<Picked> picked = pick_kernel(problem, {});
  ASSERT_TRUE(picked.ok());
  EXPECT_STREQ(picked->kernel->name, "softmax_any_ref");
  EXPECT_EQ(picked->refused.back().second, "oneDNN has no mode that turns slices of -inf into zeros");
  problem.attrs.set(Attr::mode, std::string("none"));
  problem.out.push_back(dense_desc(Dtype::f32, {2, 1}));
  picked = pick_kernel(problem, {});
  ASSERT_TRUE(picked.ok());
  EXPECT_STREQ(picked->kernel->name, "softmax_any_ref");
}

}  // namespace
}  // namespace partita::test
