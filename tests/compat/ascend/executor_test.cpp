// SPDX-License-Identifier: Apache-2.0
// Executors of the Ascend door: once or again, workspace, addresses.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "src/compat/pooling.hpp"
#include "tests/compat/ascend/client.hpp"

namespace partita::test {
namespace {

/// A gradient of 2x2 windows that do not overlap.
struct Client {
  Image gradient = Image::dense(Dtype::f32, {2, 16, 28, 28}), result = Image::dense(Dtype::f32, {2, 16, 56, 56});
  TensorPtr g = acl_tensor(gradient, ACL_FORMAT_NCHW), r = acl_tensor(result, ACL_FORMAT_NCHW);
  ListPtr two = acl_list({2, 2}), none = acl_list({0, 0});
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;

  Client() { fill(4); }
  void fill(double value) { gradient.fill(Reals(static_cast<size_t>(gradient.elements()), value)); }
  aclnnStatus first() {
    return aclnnAvgPool2dBackwardGetWorkspaceSize(g.get(), r.get(), two.get(), two.get(), none.get(), false, true, 0, 0,
                                                  r.get(), &size, &executor);
  }
  aclnnStatus second() { return run_second(aclnnAvgPool2dBackward, size, executor); }
  bool everywhere(double value) {
    return std::ranges::all_of(result.values(), [=](double v) { return v == value; });
  }
};

TEST(ascend_executor, serves_one_second_call) {
  Client c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  EXPECT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
  EXPECT_TRUE(c.everywhere(1));
  EXPECT_EQ(c.second(), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(last_error(), "aclnnAvgPool2dBackward: the executor was used up; aclSetAclOpExecutorRepeatable keeps one");
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(c.executor), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclDestroyAclOpExecutor(c.executor), ACLNN_ERR_PARAM_INVALID);
}

TEST(ascend_executor, serves_many_where_it_is_repeatable) {
  Client c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(c.executor), ACLNN_SUCCESS);
  for (double value : {4.0, 8.0, 12.0}) {
    c.fill(value);
    ASSERT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
    EXPECT_TRUE(c.everywhere(value / 4));
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(c.executor), ACLNN_SUCCESS);
  EXPECT_EQ(c.second(), ACLNN_ERR_PARAM_INVALID);
}

TEST(ascend_executor, does_not_need_the_tensors_it_was_made_with) {
  Client c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  c.g.reset();
  c.r.reset();
  c.two.reset();
  EXPECT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
  EXPECT_TRUE(c.everywhere(1));
}

TEST(ascend_executor, takes_other_addresses_where_it_is_repeatable) {
  Client c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  std::vector<float> other(static_cast<size_t>(c.gradient.elements()), 20.0f);
  EXPECT_EQ(aclSetTensorAddr(c.executor, 0, c.g.get(), other.data()), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(last_error(), "aclSetTensorAddr: the executor is not repeatable");
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(c.executor), ACLNN_SUCCESS);
  EXPECT_EQ(aclSetTensorAddr(c.executor, 3, c.g.get(), other.data()), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(last_error(), "aclSetTensorAddr: index is 3, the call has 3 tensors");
  EXPECT_EQ(aclSetTensorAddr(nullptr, 0, c.g.get(), other.data()), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetTensorAddr(c.executor, 0, nullptr, other.data()), ACLNN_ERR_INNER_NULLPTR);
  ASSERT_EQ(aclSetTensorAddr(c.executor, 0, c.g.get(), other.data()), ACLNN_SUCCESS) << last_error();
  ASSERT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
  EXPECT_TRUE(c.everywhere(5));
  EXPECT_EQ(aclDestroyAclOpExecutor(c.executor), ACLNN_SUCCESS);
}

/// Overlapping windows of a larger image: their kernel needs scratch memory.
struct Overlapping : Client {
  ListPtr three = acl_list({3, 3}), one = acl_list({1, 1});
  aclnnStatus first() {
    return aclnnAvgPool2dBackwardGetWorkspaceSize(g.get(), r.get(), three.get(), two.get(), one.get(), false, true, 0,
                                                  0, r.get(), &size, &executor);
  }
};

TEST(ascend_executor, wants_exactly_the_scratchpad_of_the_compiled_partition) {
  Overlapping c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  compat::Pooling p;
  p.kernel = {3, 3};
  p.strides = {2, 2};
  p.pads_begin = p.pads_end = p.dilations = {1, 1};
  p.divisor = compat::Divisor::padded_box;
  p.inputs[0] = {Dtype::f32, c.gradient.dims, c.gradient.strides};
  p.output = {Dtype::f32, c.result.dims, c.result.strides};
  const auto program = compat::PoolingProgram::of(p);
  ASSERT_TRUE(program.ok()) << program.status().text();
  EXPECT_EQ(c.size, (*program)->compiled().scratchpad_bytes());
  EXPECT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
}

TEST(ascend_executor, refuses_a_workspace_that_is_too_small_and_can_be_run_after_that) {
  Overlapping c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  if (c.size == 0) GTEST_SKIP() << "nothing is needed without generated code";
  const Workspace workspace(c.size);
  EXPECT_EQ(aclnnAvgPool2dBackward(workspace.data(), c.size - 1, c.executor, nullptr), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(last_error(),
            str("aclnnAvgPool2dBackward: workspaceSize is ", c.size - 1, ", needed are ", c.size, " bytes"));
  EXPECT_EQ(aclnnAvgPool2dBackward(nullptr, c.size, c.executor, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(last_error(), "aclnnAvgPool2dBackward: workspace is null");
  EXPECT_EQ(aclnnAvgPool2dBackward(workspace.data(), c.size, c.executor, nullptr), ACLNN_SUCCESS) << last_error();
}

TEST(ascend_executor, is_refused_where_it_does_not_belong) {
  Client c;
  EXPECT_EQ(aclnnAvgPool2dBackward(nullptr, 0, nullptr, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(last_error(), "aclnnAvgPool2dBackward: executor is null");
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), ACLNN_SUCCESS);
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  EXPECT_EQ(run_second(aclnnAvgPool3dBackward, c.size, c.executor), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(last_error(), "aclnnAvgPool3dBackward: the executor is for aclnnAvgPool2dBackward");
  EXPECT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
}

TEST(ascend_executor, tells_which_tensor_has_no_data) {
  Client c;
  ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(c.executor), ACLNN_SUCCESS);
  ASSERT_EQ(aclSetTensorAddr(c.executor, 2, c.r.get(), nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(c.second(), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(last_error(), "aclnnAvgPool2dBackward: gradInput has no data");
  ASSERT_EQ(aclSetTensorAddr(c.executor, 0, c.g.get(), nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(c.second(), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(last_error(), "aclnnAvgPool2dBackward: gradOutput has no data");
  EXPECT_EQ(aclDestroyAclOpExecutor(c.executor), ACLNN_SUCCESS);
}

TEST(ascend_executor, of_an_empty_result_runs_and_writes_nothing) {
  Client c;
  const Dims source{0, 2, 4, 4}, pooled{0, 2, 2, 2};
  const int64_t storage = 0;
  const TensorPtr g(aclCreateTensor(pooled.begin(), 4, ACL_FLOAT, nullptr, 0, ACL_FORMAT_NCHW, &storage, 1, nullptr),
                    aclDestroyTensor);
  const TensorPtr r(aclCreateTensor(source.begin(), 4, ACL_FLOAT, nullptr, 0, ACL_FORMAT_NCHW, &storage, 1, nullptr),
                    aclDestroyTensor);
  ASSERT_EQ(aclnnAvgPool2dBackwardGetWorkspaceSize(g.get(), r.get(), c.two.get(), c.two.get(), c.none.get(), false,
                                                   true, 0, 0, r.get(), &c.size, &c.executor),
            ACLNN_SUCCESS)
      << last_error();
  EXPECT_EQ(c.size, 0u);
  EXPECT_EQ(aclnnAvgPool2dBackward(nullptr, 0, c.executor, nullptr), ACLNN_SUCCESS) << last_error();
}

TEST(ascend_executor, calls_of_several_threads_do_not_meet) {
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([t] {
      Client c;
      for (int round = 0; round < 4; ++round) {
        c.fill(4.0 * t);
        ASSERT_EQ(c.first(), ACLNN_SUCCESS) << last_error();
        ASSERT_EQ(c.second(), ACLNN_SUCCESS) << last_error();
        ASSERT_TRUE(c.everywhere(t));
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace partita::test
