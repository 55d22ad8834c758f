// SPDX-License-Identifier: Apache-2.0
// What is taken out of the expression behind a product, and what stays there.
#include "passes/optimize/hoist.hpp"

#include <gtest/gtest.h>

#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

constexpr int64_t kColumns = 32;

/// A product of so many rows, with two more operands: in2 and in3, one number a column.
Step product(int64_t rows) {
  const Dims dims{rows, kColumns};
  const TensorDesc of_columns{Dtype::f32, dims, {0, 1}, 0};
  Step step;
  step.problem = problem_for(StepKind::matmul, OpKind::MatMul);
  step.problem.in = {dense_desc(Dtype::f32, {rows, 8}), dense_desc(Dtype::f32, {8, kColumns}), of_columns, of_columns};
  step.problem.out = {dense_desc(Dtype::f32, dims)};
  step.problem.ports_in = 2;
  step.problem.ports_out = 1;
  step.in = {0, 1, 2, 3};
  step.out = {4};
  step.ops = {"MatMul 1", "BatchNormInference 2"};
  return step;
}

Program with_buffers() {
  Program program;
  program.buffers.resize(5);
  return program;
}

/// skeleton * (in2 / sqrt(in3))
Step scaled_product(int64_t rows) {
  Step step = product(rows);
  ExprBuilder b(step.problem.back);
  const Value made = b.skeleton(), scale = b.load(2), variance = b.load(3);
  b.store(0, b.mul(made, b.div(scale, b.apply(ExprOp::sqrt, variance))));
  return step;
}

void expect_stays(Step step) {
  Program program = with_buffers();
  const Step before = step;
  EXPECT_TRUE(hoist(step, program).empty());
  EXPECT_EQ(step.problem, before.problem);
  EXPECT_EQ(step.in, before.in);
  EXPECT_EQ(program.buffers.size(), 5u);
}

TEST(hoist, a_factor_for_each_column_is_computed_before) {
  Step step = scaled_product(64);
  Program program = with_buffers();
  const std::vector<Step> before = hoist(step, program);
  ASSERT_EQ(before.size(), 1u);
  const Step& loop = before[0];
  EXPECT_EQ(text_of(loop.problem.back), "%0 = load in0; %1 = load in1; %2 = sqrt %1; %3 = div %0 %2; store out0 %3");
  EXPECT_EQ(loop.in, (std::vector<int>{2, 3}));
  EXPECT_EQ(loop.problem.out[0], dense_desc(Dtype::f32, {1, kColumns}));
  EXPECT_EQ(loop.ops, step.ops);

  ASSERT_EQ(program.buffers.size(), 6u);
  EXPECT_EQ(program.buffers[5].role, partita::Buffer::Role::temporary);
  EXPECT_EQ(loop.out, std::vector<int>{5});
  EXPECT_EQ(text_of(step.problem.back), "%0 = skeleton; %1 = load in4; %2 = mul %0 %1; store out0 %2");
  EXPECT_EQ(step.in, (std::vector<int>{0, 1, 2, 3, 5}));
  EXPECT_EQ(step.problem.in[4], (TensorDesc{Dtype::f32, {64, kColumns}, {0, 1}, 0}));
}

TEST(hoist, what_has_nearly_as_many_elements_as_the_result_stays) { expect_stays(scaled_product(4)); }

TEST(hoist, what_depends_on_the_product_stays_and_so_do_numbers_as_they_are_read) {
  Step step = product(64);
  ExprBuilder b(step.problem.back);
  const Value sum = b.add(b.skeleton(), b.load(2));
  b.store(0, b.div(sum, b.apply(ExprOp::sqrt, b.mul(sum, b.load(3)))));
  expect_stays(step);
}

TEST(hoist, what_reads_coordinates_stays) {
  Step step = product(64);
  ExprBuilder b(step.problem.back);
  const Value made = b.skeleton(), column = b.apply(ExprOp::to_f32, b.index(1));
  b.store(0, b.mul(made, b.mul(column, b.load(2))));
  expect_stays(step);
}

}  // namespace
}  // namespace partita::test
