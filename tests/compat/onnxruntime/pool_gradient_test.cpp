// SPDX-License-Identifier: Apache-2.0
// ONNX's attributes of pooling gradients in our terms.
#include "src/compat/onnxruntime/pool_gradient.hpp"

#include <gtest/gtest.h>

#include "src/base/text.hpp"

namespace partita::compat::onnxruntime {
namespace {

GradientNode node(std::vector<int64_t> kernel, std::vector<int64_t> strides, std::string auto_pad = "NOTSET") {
  GradientNode n;
  n.kernel_shape = std::move(kernel);
  n.strides = std::move(strides);
  n.auto_pad = std::move(auto_pad);
  return n;
}

TEST(ort_pool_gradient, splits_pads_into_begin_and_end) {
  GradientNode n = node({3, 3}, {});
  n.pads = {1, 0, 2, 1};
  const auto p = pooling_of(n, Dtype::f32, {5, 2, 7, 5}, {-1, 2, 6, 6});
  ASSERT_TRUE(p.ok()) << p.status().text();
  EXPECT_EQ(p->pads_begin, (Dims{1, 0}));
  EXPECT_EQ(p->pads_end, (Dims{2, 1}));
  EXPECT_EQ(p->strides, (Dims{1, 1}));
  EXPECT_EQ(p->output.dims, (Dims{5, 2, 6, 6})) << "the batch is that of dY";
  EXPECT_EQ(p->kind, OpKind::AvgPoolBackward);
}

TEST(ort_pool_gradient, same_puts_the_odd_cell_where_it_says) {
  for (const auto& [mode, begin, end] : {std::tuple("SAME_UPPER", 0, 1), std::tuple("SAME_LOWER", 1, 0)}) {
    const auto p = pooling_of(node({3}, {2}, mode), Dtype::f32, {1, 2, 3}, {1, 2, 6});
    ASSERT_TRUE(p.ok()) << p.status().text();
    EXPECT_EQ(p->pads_begin[0], begin);
    EXPECT_EQ(p->pads_end[0], end);
  }
  const auto valid = pooling_of(node({3}, {2}, "VALID"), Dtype::f32, {1, 2, 2}, {1, 2, 6});
  ASSERT_TRUE(valid.ok()) << valid.status().text();
  EXPECT_EQ(valid->pads_end[0], 0);
}

TEST(ort_pool_gradient, counted_padding_divides_by_the_whole_kernel) {
  GradientNode n = node({2}, {2});
  for (bool include : {false, true}) {
    n.count_include_pad = include;
    const auto p = pooling_of(n, Dtype::bf16, {1, 2, 3}, {1, 2, 6});
    ASSERT_TRUE(p.ok()) << p.status().text();
    EXPECT_EQ(p->divisor, include ? Divisor::kernel : Divisor::valid);
  }
}

TEST(ort_pool_gradient, of_a_maximum_counts_indices_through_the_tensor) {
  GradientNode n = node({2}, {2});
  n.maximum = true;
  const auto p = pooling_of(n, Dtype::f16, {1, 2, 3}, {1, 2, 6});
  ASSERT_TRUE(p.ok()) << p.status().text();
  EXPECT_EQ(p->kind, OpKind::MaxPoolIndicesBackward);
  EXPECT_EQ(p->index_base, IndexBase::tensor);
  EXPECT_EQ(p->input_count, 2);
  EXPECT_EQ(p->inputs[1].dtype, Dtype::s64);
}

TEST(ort_pool_gradient, takes_both_rules_of_rounding_up) {
  GradientNode n = node({1}, {2});
  n.ceil_mode = true;
  for (int64_t windows : {3, 4}) {
    const auto p = pooling_of(n, Dtype::f32, {1, 1, windows}, {1, 1, 6});
    EXPECT_TRUE(p.ok()) << p.status().text();
  }
  EXPECT_FALSE(pooling_of(n, Dtype::f32, {1, 1, 2}, {1, 1, 6}).ok());
  n.ceil_mode = false;
  EXPECT_FALSE(pooling_of(n, Dtype::f32, {1, 1, 4}, {1, 1, 6}).ok());
}

TEST(ort_pool_gradient, refuses_with_the_attributes_name) {
  const auto refused = [](const GradientNode& n) { return check(n).text(); };
  EXPECT_EQ(refused(node({2, 2}, {})), "success");
  EXPECT_EQ(refused(node({}, {})), "kernel_shape has 0 entries, it must have 1 to 3");
  EXPECT_EQ(refused(node({2, 0}, {})), "kernel_shape has an entry 0, it must be at least 1");
  EXPECT_EQ(refused(node({2, 2}, {1})), "strides has 1 entries, it must have 2");
  EXPECT_EQ(refused(node({2}, {1}, "SAME")), "auto_pad is `SAME`, it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  GradientNode n = node({2}, {1});
  n.pads = {1};
  EXPECT_EQ(refused(n), "pads has 1 entries, it must have 2");
  n.pads = {0, -1};
  EXPECT_EQ(refused(n), "pads has an entry -1, it must be at least 0");
  n.pads.clear();
  n.dilations = {2};
  EXPECT_EQ(refused(n), "dilations of an average must be 1");
  n.maximum = true;
  EXPECT_EQ(refused(n), "success");
  n.storage_order = 1;
  EXPECT_EQ(refused(n), "storage_order must be 0: indices that count down columns are not taken");
}

TEST(ort_pool_gradient, refuses_shapes_that_do_not_fit) {
  const GradientNode n = node({2}, {2});
  EXPECT_EQ(pooling_of(n, Dtype::f32, {1, 2, 2}, {1, 2, 7}).status().text(),
            "dY is [1,2,2], which is not what pooling [1,2,7] makes");
  EXPECT_EQ(pooling_of(n, Dtype::f32, {1, 2, 2}, {1, 2, -1}).status().text(),
            "the graph must tell the shape of dX but for the batch, got [1,2,-1]");
  EXPECT_EQ(pooling_of(n, Dtype::f32, {1, 2}, {1, 2, 4}).status().text(),
            "dY is [1,2] and dX [1,2,4], both must have batch, channels and 1 spatial dims");
}

}  // namespace
}  // namespace partita::compat::onnxruntime
