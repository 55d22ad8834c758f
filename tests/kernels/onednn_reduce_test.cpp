// SPDX-License-Identifier: Apache-2.0
// The seven reductions on oneDNN against the reference.
#include <gtest/gtest.h>

#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

constexpr OpKind kReductions[] = {OpKind::ReduceL1,  OpKind::ReduceL2,   OpKind::ReduceMax, OpKind::ReduceMean,
                                  OpKind::ReduceMin, OpKind::ReduceProd, OpKind::ReduceSum};

Problem random_reduction(Random& random, OpKind op, Dtype dtype) {
  const int rank = static_cast<int>(random.whole(1, 5));
  Dims src, dst;
  std::vector<int64_t> axes;
  const bool keep = random.coin();
  const int64_t always = random.whole(0, rank - 1);
  for (int axis = 0; axis < rank; ++axis) {
    const bool reduced = axis == always || random.whole(0, 2) == 0;
    src.push_back(axis == always ? random.whole(2, 17) : random.whole(1, 5));
    if (reduced) axes.push_back(random.coin() ? axis : axis - rank);
    if (!reduced || keep) dst.push_back(reduced ? 1 : src.back());
  }
  Problem problem = problem_for(StepKind::reduce, op);
  problem.attrs.set(Attr::axes, axes);
  problem.attrs.set(Attr::keep_dims, keep);
  problem.in = {any_desc(dtype, src, random)};
  problem.out = {any_desc(dtype, dst, random)};
  return problem;
}

class onednn_reduce : public testing::TestWithParam<Dtype> {};

TEST_P(onednn_reduce, agrees_with_the_reference) {
  for (uint64_t seed = 100; seed < 200; ++seed) {
    Random random(seed);
    const OpKind op = kReductions[seed % std::size(kReductions)];
    expect_rows_agree(random_reduction(random, op, GetParam()), random, {.tolerance_factor = 2});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, onednn_reduce, testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace partita::test
