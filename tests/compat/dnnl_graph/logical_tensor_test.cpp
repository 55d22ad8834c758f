// SPDX-License-Identifier: Apache-2.0
// Logical tensors through the C interface: fields, sizes, equality, refusals.
#include <algorithm>

#include "tests/compat/dnnl_graph/handles.hpp"

namespace partita::test {
namespace {

constexpr auto kStrided = dnnl_graph_layout_type_strided;
constexpr auto kAny = dnnl_graph_layout_type_any;
constexpr auto kUndef = dnnl_graph_tensor_property_undef;
constexpr auto kHostScalar = static_cast<dnnl_graph_tensor_property_t>(3);

size_t bytes(const Lt& t) {
  size_t size = 0;
  EXPECT_EQ(dnnl_graph_logical_tensor_get_mem_size(&t, &size), dnnl_success);
  return size;
}

bool equal(const Lt& a, const Lt& b) {
  uint8_t answer = 2;
  EXPECT_EQ(dnnl_graph_logical_tensor_is_equal(&a, &b, &answer), dnnl_success);
  EXPECT_LE(answer, 1);
  return answer == 1;
}

TEST(dnnl_graph_logical_tensor, init_leaves_dims_and_strides_unknown) {
  Lt t;
  ASSERT_EQ(dnnl_graph_logical_tensor_init(&t, 7, dnnl_bf16, 2, kStrided, dnnl_graph_tensor_property_constant),
            dnnl_success);
  EXPECT_EQ(t.id, 7u);
  EXPECT_EQ(t.ndims, 2);
  EXPECT_EQ(t.data_type, dnnl_bf16);
  EXPECT_EQ(t.property, dnnl_graph_tensor_property_constant);
  EXPECT_EQ(t.layout_type, kStrided);
  for (int d = 0; d < 2; ++d) {
    EXPECT_EQ(t.dims[d], DNNL_GRAPH_UNKNOWN_DIM);
    EXPECT_EQ(t.layout.strides[d], DNNL_GRAPH_UNKNOWN_DIM);
  }
  ASSERT_EQ(dnnl_graph_logical_tensor_init(&t, 7, dnnl_f32, -5, kAny, kUndef), dnnl_success);
  EXPECT_EQ(t.ndims, -5);
}

TEST(dnnl_graph_logical_tensor, a_scalar_has_zeros_in_front) {
  Lt t;
  ASSERT_EQ(dnnl_graph_logical_tensor_init(&t, 1, dnnl_f32, 0, kStrided, kUndef), dnnl_success);
  EXPECT_EQ(t.dims[0], 0);
  EXPECT_EQ(t.layout.strides[0], 0);
  EXPECT_EQ(bytes(t), 4u);
}

TEST(dnnl_graph_logical_tensor, init_refuses) {
  Lt t;
  const int64_t dims[DNNL_MAX_NDIMS] = {2, 3};
  EXPECT_STATUS(dnnl_graph_logical_tensor_init(nullptr, 1, dnnl_f32, 1, kAny, kUndef), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init(&t, 1, dnnl_f32, 13, kAny, kUndef), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init(&t, 1, dnnl_f32, 1, kStrided, kHostScalar), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init(&t, 1, dnnl_f16, 0, kStrided, kHostScalar), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init(&t, 1, dnnl_s32, 0, kStrided, kHostScalar), dnnl_success);

  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(nullptr, 1, dnnl_f32, 2, dims, kAny, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(&t, 1, dnnl_f32, 13, dims, kAny, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(&t, 1, dnnl_f32, -1, dims, kAny, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(&t, 1, dnnl_f32, 2, nullptr, kAny, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(&t, 1, dnnl_f32, 0, nullptr, kAny, kUndef), dnnl_success);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(&t, 1, dnnl_f32, 2, dims, kStrided, kHostScalar),
                dnnl_invalid_arguments);

  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_strides(nullptr, 1, dnnl_f32, 2, dims, dims, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_strides(&t, 1, dnnl_f32, 13, dims, dims, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_strides(&t, 1, dnnl_f32, 2, nullptr, dims, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_strides(&t, 1, dnnl_f32, 2, dims, nullptr, kUndef),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_strides(&t, 1, dnnl_f32, 2, dims, dims, kHostScalar),
                dnnl_invalid_arguments);
}

TEST(dnnl_graph_logical_tensor, strided_dims_give_dense_strides) {
  const Lt t = lt(1, {2, 0, 3});
  EXPECT_EQ(Sizes(t.layout.strides, t.layout.strides + 3), (Sizes{3, 3, 1}));
  const Lt open = lt(1, {2, DNNL_GRAPH_UNKNOWN_DIM});
  EXPECT_EQ(open.layout.strides[0], DNNL_GRAPH_UNKNOWN_DIM);
  EXPECT_EQ(lt(1, {2, 3}, dnnl_f32, kAny).layout_type, kAny);
}

TEST(dnnl_graph_logical_tensor, memory_size) {
  EXPECT_EQ(bytes(lt(1, {2, 3})), 24u);
  EXPECT_EQ(bytes(lt(1, {2, 0, 3})), 0u);
  EXPECT_EQ(bytes(lt(1, {})), 4u);
  EXPECT_EQ(bytes(lt(1, {3}, dnnl_s4)), 2u);
  EXPECT_EQ(bytes(lt(1, {5}, dnnl_bf16)), 10u);
  EXPECT_EQ(bytes(lt(1, {2, 3}, dnnl_f32, kAny)), SIZE_MAX);
  EXPECT_EQ(bytes(unknown_lt(1, dnnl_f32, kStrided)), SIZE_MAX);
  Lt padded;
  const int64_t dims[] = {2, 1, 3}, strides[] = {10, 999, 2};
  ASSERT_EQ(dnnl_graph_logical_tensor_init_with_strides(&padded, 1, dnnl_f32, 3, dims, strides, kUndef), dnnl_success);
  EXPECT_EQ(padded.layout_type, kStrided);
  EXPECT_EQ(bytes(padded), 80u);
  // Rows that reach over each other end behind the largest product of a dim and its stride.
  const int64_t two_by_three[] = {2, 3}, crossing[] = {3, 2};
  Lt interleaved;
  ASSERT_EQ(dnnl_graph_logical_tensor_init_with_strides(&interleaved, 1, dnnl_f32, 2, two_by_three, crossing, kUndef),
            dnnl_success);
  EXPECT_EQ(bytes(interleaved), 32u);

  size_t size = 0;
  Lt opaque = unknown_lt(1, dnnl_f32, dnnl_graph_layout_type_opaque);
  EXPECT_STATUS(dnnl_graph_logical_tensor_get_mem_size(&opaque, &size), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_get_mem_size(nullptr, &size), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_get_mem_size(&padded, nullptr), dnnl_invalid_arguments);
  padded.ndims = 99;
  EXPECT_STATUS(dnnl_graph_logical_tensor_get_mem_size(&padded, &size), dnnl_invalid_arguments);
}

TEST(dnnl_graph_logical_tensor, equality) {
  const Lt t = lt(1, {2, 3});
  EXPECT_TRUE(equal(t, lt(1, {2, 3})));
  EXPECT_FALSE(equal(t, lt(2, {2, 3})));
  EXPECT_FALSE(equal(t, lt(1, {2, 3}, dnnl_f16)));
  EXPECT_FALSE(equal(t, lt(1, {2, 4})));
  EXPECT_FALSE(equal(t, lt(1, {6})));
  EXPECT_FALSE(equal(t, lt(1, {2, 3}, dnnl_f32, kAny)));
  EXPECT_FALSE(equal(t, lt(1, {2, 3}, dnnl_f32, kStrided, dnnl_graph_tensor_property_constant)));
  Lt strided = t;
  strided.layout.strides[0] = 4;
  EXPECT_FALSE(equal(t, strided));
  Lt any = lt(1, {2, 3}, dnnl_f32, kAny), other = any;
  other.layout.strides[0] = 4;
  EXPECT_TRUE(equal(any, other));
  any.layout_type = other.layout_type = dnnl_graph_layout_type_opaque;
  any.layout.layout_id = 17, other.layout.layout_id = 33;
  EXPECT_FALSE(equal(any, other));

  uint8_t answer = 0;
  EXPECT_STATUS(dnnl_graph_logical_tensor_is_equal(nullptr, &t, &answer), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_is_equal(&t, nullptr, &answer), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_logical_tensor_is_equal(&t, &t, nullptr), dnnl_invalid_arguments);
}

}  // namespace
}  // namespace partita::test
