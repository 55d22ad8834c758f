// SPDX-License-Identifier: Apache-2.0
// What rows on oneDNN answer where oneDNN fails: refusals say how, and what is no refusal is an error.
#include <gtest/gtest.h>

#include <new>

#include "kernels/onednn/rows.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

Problem sum_of(const Dims& src, const Dims& dst, int64_t axis) {
  Problem problem = problem_for(StepKind::reduce, OpKind::ReduceSum);
  problem.attrs.set(Attr::axes, std::vector<int64_t>{axis});
  problem.attrs.set(Attr::keep_dims, true);
  problem.in = {dense_desc(Dtype::f32, src)};
  problem.out = {dense_desc(Dtype::f32, dst)};
  return problem;
}

template <dnnl_status_t status>
const char* plan_that_fails(const Problem&, const Target&, onednn::PrimitiveRun&) {
  throw dnnl::error(status, "could not. Try something else");
}

/// Both kinds of rows that are made of the planner.
template <dnnl_status_t status>
constexpr std::array kRows = {onednn::native_row<plan_that_fails<status>>("native", StepKind::reduce),
                              onednn::float_row<plan_that_fails<status>>("float", StepKind::reduce)};

TEST(onednn_refusals, say_what_onednn_answered) {
  const Problem problem = sum_of({4, 3}, {4, 1}, 1);
  for (const Kernel& row : kRows<dnnl_unimplemented>)
    EXPECT_STREQ(row.refuse(problem, {}),
                 "oneDNN has no implementation for these types, sizes or layouts on this machine (could not)");
  for (const Kernel& row : kRows<dnnl_invalid_arguments>)
    EXPECT_STREQ(row.refuse(problem, {}), "oneDNN calls the arguments of the primitive invalid (could not)");
}

TEST(onednn_refusals, are_not_made_of_failures) {
  const Problem problem = sum_of({4, 3}, {4, 1}, 1);
  for (const Kernel& row : kRows<dnnl_runtime_error>) {
    EXPECT_EQ(row.refuse(problem, {}), nullptr);
    const auto made = row.make(problem, {});
    EXPECT_EQ(made.status().code(), Code::runtime_error);
    EXPECT_EQ(made.status().text(), "oneDNN failed: could not. Try something else");
  }
  for (const Kernel& row : kRows<dnnl_out_of_memory>) EXPECT_THROW(row.refuse(problem, {}), std::bad_alloc);
}

}  // namespace
}  // namespace partita::test
