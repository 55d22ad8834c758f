// SPDX-License-Identifier: Apache-2.0
// The kernel tables: names, order, and how a row is picked.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/maxima.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

Problem small_matmul() {
  Problem problem = problem_for(StepKind::matmul, OpKind::MatMul);
  problem.attrs.set(Attr::transpose_a, false);
  problem.attrs.set(Attr::transpose_b, false);
  problem.in = {dense_desc(Dtype::f32, {2, 3}), dense_desc(Dtype::f32, {3, 4})};
  problem.out = {dense_desc(Dtype::f32, {2, 4})};
  return problem;
}

TEST(tables, rows_are_named_after_their_step_and_no_name_is_used_twice) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(StepKind::dropout); ++i) {
    const StepKind step = static_cast<StepKind>(i);
    for (const Kernel& row : kernels_for(step)) {
      EXPECT_EQ(row.step, step) << row.name;
      EXPECT_TRUE(std::string_view(row.name).starts_with(std::string(name_of(step)) + "_")) << row.name;
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
    }
  }
}

TEST(tables, every_step_of_an_operator_ends_with_the_reference) {
  for (int i = static_cast<int>(StepKind::pool_forward); i <= static_cast<int>(StepKind::dropout); ++i) {
    const StepKind step = static_cast<StepKind>(i);
    ASSERT_FALSE(kernels_for(step).empty()) << name_of(step);
    EXPECT_EQ(kernels_for(step).back().name, std::string(name_of(step)) + "_any_ref");
  }
}

/// Each of them was asked.
size_t rows_before(const Picked& picked) {
  return static_cast<size_t>(picked.kernel - kernels_for(picked.kernel->step).data());
}

TEST(tables, the_first_row_that_accepts_is_picked) {
  const Result<Picked> picked = pick_kernel(small_matmul(), {});
  ASSERT_TRUE(picked.ok()) << picked.status().text();
  EXPECT_STREQ(picked->kernel->name, "matmul_float_onednn");
  EXPECT_EQ(picked->refused.size(), rows_before(*picked));
}

/// The scratch memory that these windows take is too much where vectors have 16 lanes, not where they have 8.
TEST(tables, a_generated_row_takes_what_its_own_instructions_can_whatever_the_target_has) {
  const Problem p = maximum_gradient(Dtype::f32, {1, 1, {60, 3000}, {40, 40}, {1, 1}, {1, 1}, {0, 0}}, true);
  for (const Kernel& row : kernels_for(p.step)) {
    if (row.isa == Isa::any) continue;
    EXPECT_EQ(row.refuse(p, {.isa = Isa::avx512}) != nullptr, row.isa == Isa::avx512) << row.name;
  }
}

TEST(tables, a_forced_name_leaves_only_that_row) {
  const Result<Picked> picked = pick_kernel(small_matmul(), {}, "matmul_any_ref");
  ASSERT_TRUE(picked.ok()) << picked.status().text();
  EXPECT_STREQ(picked->kernel->name, "matmul_any_ref");
  EXPECT_EQ(picked->refused.size(), rows_before(*picked));
}

TEST(tables, a_forced_name_that_is_not_in_the_table_is_an_error) {
  const Result<Picked> picked = pick_kernel(small_matmul(), {}, "matmul_by_hand");
  ASSERT_FALSE(picked.ok());
  EXPECT_EQ(picked.status().code(), Code::unimplemented);
  EXPECT_EQ(picked.status().error().message, "no kernel for this matmul step with the forced name `matmul_by_hand`");
}

TEST(tables, fused_problems_are_declined_by_primitives_and_references) {
  Problem problem = small_matmul();
  ExprBuilder(problem.back).skeleton();
  for (const Kernel& row : kernels_for(problem.step)) EXPECT_NE(row.refuse(problem, {}), nullptr) << row.name;
  EXPECT_FALSE(pick_kernel(problem, {}).ok());
}

TEST(tables, tensors_without_elements_are_left_to_the_reference) {
  Problem problem = small_matmul();
  problem.in[0] = dense_desc(Dtype::f32, {0, 3});
  problem.out[0] = dense_desc(Dtype::f32, {0, 4});
  const Result<Picked> picked = pick_kernel(problem, {});
  ASSERT_TRUE(picked.ok()) << picked.status().text();
  EXPECT_STREQ(picked->kernel->name, "matmul_any_ref");
}

}  // namespace
}  // namespace partita::test
