// SPDX-License-Identifier: Apache-2.0
// Which gradients of poolings are split into one that folds and one that stores.
#include "passes/optimize/make_again.hpp"

#include <gtest/gtest.h>

#include "passes/lower/lowering.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

enum : int { kSource, kGradient, kMade, kSums, kResult };  // buffers

/// The gradient of a maximum with sums over each channel, and a loop that waits for them and reads the gradient once
/// more.
Program waiting_program(Dtype dtype, const WindowSizes& sizes) {
  Program program;
  program.buffers.resize(kResult + 1);
  program.buffers[kSource].role = program.buffers[kGradient].role = partita::Buffer::Role::input;
  program.buffers[kResult].role = partita::Buffer::Role::output;

  Step pool;
  pool.problem = maximum_gradient(dtype, sizes, false);
  const TensorDesc made = pool.problem.out[0], sums{Dtype::f32, made.dims, {0, 1, 0, 0}, 0};
  pool.problem.ports_in = 2;
  pool.problem.ports_out = 1;
  pool.problem.out.push_back(sums);
  ExprBuilder b(pool.problem.back);
  b.store(0, b.skeleton());
  b.fold(Fold::sum, 1, b.skeleton());
  pool.in = {kSource, kGradient};
  pool.out = {kMade, kSums};
  pool.ops = {"MaxPoolBackward 1", "BatchNormTrainingBackward 2"};

  LoopStep loop;
  const auto value = loop.load(made, kMade), sum = loop.load(sums, kSums);
  loop.store(made, kResult, loop.builder().sub(value, sum));
  program.steps = {pool, loop.take()};
  program.steps[1].ops = {"BatchNormTrainingBackward 2"};
  return program;
}

const WindowSizes kWhole{2, 3, {4, 6}, {2, 2}, {2, 2}, {1, 1}, {0, 0}};

void expect_stays(Program program) {
  const std::vector<Step> before = program.steps;
  EXPECT_FALSE(make_again(program));
  ASSERT_EQ(program.steps.size(), before.size());
  for (size_t s = 0; s < before.size(); ++s) EXPECT_EQ(program.steps[s].problem, before[s].problem);
}

TEST(make_again, sums_are_made_first_and_the_gradient_again_before_the_loop_that_reads_it) {
  Program program = waiting_program(Dtype::f32, kWhole);
  const Step loop = program.steps[1];
  ASSERT_TRUE(make_again(program));
  ASSERT_EQ(program.steps.size(), 3u);
  const Step &folds = program.steps[0], &stores = program.steps[1];
  EXPECT_EQ(text_of(folds.problem.back), "%0 = skeleton; fold_sum out0 %0");
  EXPECT_EQ(folds.out, std::vector<int>{kSums});
  EXPECT_EQ(text_of(stores.problem.back), "%0 = skeleton; store out0 %0");
  EXPECT_EQ(stores.in, (std::vector<int>{kSource, kGradient}));
  EXPECT_EQ(stores.out, std::vector<int>{kMade});
  EXPECT_EQ(stores.ops, std::vector<std::string>{"MaxPoolBackward 1"}) << "the loop behind names the other itself";
  EXPECT_EQ(program.steps[2].problem, loop.problem);
}

TEST(make_again, windows_may_hang_over_and_leave_cells_behind_the_last_one) {
  Program left = waiting_program(Dtype::f32, {2, 3, {5, 6}, {2, 2}, {2, 2}, {1, 1}, {0, 0}});
  EXPECT_TRUE(make_again(left));
  Program padded = waiting_program(Dtype::f32, {2, 3, {4, 6}, {3, 2}, {3, 2}, {1, 1}, {1, 0}});
  EXPECT_TRUE(make_again(padded));
}

TEST(make_again, overlapping_windows_are_made_once) {
  expect_stays(waiting_program(Dtype::f32, {2, 3, {5, 7}, {3, 3}, {2, 2}, {1, 1}, {0, 0}}));
}

TEST(make_again, narrow_elements_are_made_once) { expect_stays(waiting_program(Dtype::bf16, kWhole)); }

TEST(make_again, what_others_read_as_well_is_made_once) {
  Program program = waiting_program(Dtype::f32, kWhole);
  program.buffers[kMade].role = partita::Buffer::Role::output;
  expect_stays(program);
  program = waiting_program(Dtype::f32, kWhole);
  program.steps.push_back(program.steps[1]);
  expect_stays(program);
}

TEST(make_again, what_folds_nothing_is_no_reason) {
  Program program = waiting_program(Dtype::f32, kWhole);
  Step& pool = program.steps[0];
  pool.problem.back = {};
  ExprBuilder b(pool.problem.back);
  b.store(0, b.skeleton());
  pool.problem.out.pop_back();
  pool.out.pop_back();
  expect_stays(program);
}

}  // namespace
}  // namespace partita::test
