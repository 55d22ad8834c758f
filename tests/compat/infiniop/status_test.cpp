// SPDX-License-Identifier: Apache-2.0
// Each status code of the InfiniCore door, and what brings it about.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "src/compat/infiniop/objects.hpp"
#include "tests/compat/infiniop/client.hpp"

namespace partita::test {
namespace {

/// What the creation of the average's gradient takes; a row changes what it is about.
struct Creation {
  infiniDtype_t type = INFINI_DTYPE_F32, result_type = INFINI_DTYPE_F32;
  Dims result{1, 2, 4, 4}, gradient{1, 2, 2, 2}, input{1, 2, 4, 4};
  Dims result_strides{32, 16, 4, 1}, gradient_strides{8, 4, 2, 1};
  std::vector<size_t> kernel{2, 2}, strides{2, 2}, pads{0, 0};
  bool ceil = false;
  const char* null = "";  ///< name of the argument that is null

  infiniStatus_t make() const {
    const auto is = [this](const char* name) { return std::strcmp(name, null) == 0; };
    const Handle handle;
    const Descriptor dx(result_type, result, result_strides), dy(type, gradient, gradient_strides), x(type, input, {});
    const auto at = [&](const char* name, const std::vector<size_t>& list) {
      return is(name) ? nullptr : const_cast<size_t*>(list.data());
    };
    InfiniopDescriptor* made = nullptr;
    const infiniStatus_t s = infiniopCreateAvgPoolBackwardDescriptor(
        is("handle") ? nullptr : infiniopHandle_t(handle), is("desc_ptr") ? nullptr : &made,
        is("grad_input") ? nullptr : infiniopTensorDescriptor_t(dx),
        is("grad_output") ? nullptr : infiniopTensorDescriptor_t(dy),
        is("input") ? nullptr : infiniopTensorDescriptor_t(x), at("kernel_size", kernel), at("strides", strides),
        at("pads", pads), ceil);
    if (made) infiniopDestroyAvgPoolBackwardDescriptor(made);
    return s;
  }
};

struct Row {
  const char* name;
  std::function<void(Creation&)> change;
  infiniStatus_t status;
};

// clang-format off
const Row kRows[] = {
  {"success", [](Creation&) {}, INFINI_STATUS_SUCCESS},
  {"null_handle", [](Creation& c) { c.null = "handle"; }, INFINI_STATUS_NULL_POINTER},
  {"null_desc_ptr", [](Creation& c) { c.null = "desc_ptr"; }, INFINI_STATUS_NULL_POINTER},
  {"null_grad_input", [](Creation& c) { c.null = "grad_input"; }, INFINI_STATUS_NULL_POINTER},
  {"null_grad_output", [](Creation& c) { c.null = "grad_output"; }, INFINI_STATUS_NULL_POINTER},
  {"null_input", [](Creation& c) { c.null = "input"; }, INFINI_STATUS_NULL_POINTER},
  {"null_kernel", [](Creation& c) { c.null = "kernel_size"; }, INFINI_STATUS_NULL_POINTER},
  {"null_strides", [](Creation& c) { c.null = "strides"; }, INFINI_STATUS_NULL_POINTER},
  {"null_pads", [](Creation& c) { c.null = "pads"; }, INFINI_STATUS_NULL_POINTER},
  {"kernel_zero", [](Creation& c) { c.kernel = {2, 0}; }, INFINI_STATUS_BAD_PARAM},
  {"stride_zero", [](Creation& c) { c.strides = {0, 2}; }, INFINI_STATUS_BAD_PARAM},
  {"pad_too_large", [](Creation& c) { c.pads = {size_t{1} << 40, 0}; }, INFINI_STATUS_BAD_PARAM},
  {"dtype", [](Creation& c) { c.type = c.result_type = INFINI_DTYPE_F64; }, INFINI_STATUS_BAD_TENSOR_DTYPE},
  {"dtypes_differ", [](Creation& c) { c.result_type = INFINI_DTYPE_F16; }, INFINI_STATUS_BAD_TENSOR_DTYPE},
  {"rank", [](Creation& c) { c.result = c.input = {4, 4}; c.result_strides = {4, 1};
                             c.gradient = {2, 2}; c.gradient_strides = {2, 1}; }, INFINI_STATUS_BAD_TENSOR_SHAPE},
  {"result_shape", [](Creation& c) { c.result = {1, 2, 4, 3}; }, INFINI_STATUS_BAD_TENSOR_SHAPE},
  {"channels", [](Creation& c) { c.gradient = {1, 1, 2, 2}; }, INFINI_STATUS_BAD_TENSOR_SHAPE},
  {"gradient_of_ceil_without_ceil", [](Creation& c) { c.kernel = {3, 3}; }, INFINI_STATUS_BAD_TENSOR_SHAPE},
  {"gradient_of_ceil_with_ceil", [](Creation& c) { c.kernel = {3, 3}; c.ceil = true; }, INFINI_STATUS_SUCCESS},
  {"window_too_large", [](Creation& c) { c.kernel = {5, 5}; c.gradient = {1, 2, 0, 0}; },
   INFINI_STATUS_BAD_TENSOR_SHAPE},
  {"negative_strides", [](Creation& c) { c.gradient_strides = {8, 4, 2, -1}; }, INFINI_STATUS_BAD_TENSOR_STRIDES},
  {"strides_beyond_memory", [](Creation& c) { c.gradient_strides = {8, 4, int64_t{1} << 62, 1}; },
   INFINI_STATUS_BAD_TENSOR_STRIDES},
  {"result_shares_memory", [](Creation& c) { c.result_strides = {32, 16, 1, 1}; }, INFINI_STATUS_BAD_TENSOR_STRIDES},
  {"result_rows_lie_between_each_other", [](Creation& c) { c.result_strides = {64, 32, 5, 4}; }, INFINI_STATUS_SUCCESS},
  {"repeated_gradient", [](Creation& c) { c.gradient_strides = {0, 0, 0, 0}; }, INFINI_STATUS_SUCCESS},
};
// clang-format on

class InfiniopStatus : public testing::TestWithParam<Row> {};

TEST_P(InfiniopStatus, of_a_creation) {
  Creation creation;
  GetParam().change(creation);
  EXPECT_EQ(creation.make(), GetParam().status);
}

INSTANTIATE_TEST_SUITE_P(each, InfiniopStatus, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

/// The gradient of an overlapping average, which needs a workspace where code is generated.
class InfiniopRun : public testing::Test {
 protected:
  InfiniopRun() {
    const Descriptor dx(result), dy(gradient);
    Lists lists({3, 3}, {2, 2}, {1, 1}, false);
    gradient.fill(Reals(static_cast<size_t>(gradient.elements()), 1.0));
    EXPECT_EQ(infiniopCreateAvgPoolBackwardDescriptor(handle, &desc, dx, dy, dx, lists.kernel.data(),
                                                      lists.strides.data(), lists.pads.data(), false),
              INFINI_STATUS_SUCCESS);
    EXPECT_EQ(infiniopGetAvgPoolBackwardWorkspaceSize(desc, &size), INFINI_STATUS_SUCCESS);
    workspace.resize(size + 1);
  }
  ~InfiniopRun() override { infiniopDestroyAvgPoolBackwardDescriptor(desc); }

  Handle handle;
  Image gradient = Image::dense(Dtype::f32, {2, 16, 28, 28}), result = Image::dense(Dtype::f32, {2, 16, 56, 56});
  infiniopAvgPoolBackwardDescriptor_t desc = nullptr;
  size_t size = 0;
  std::vector<char> workspace;
};

TEST_F(InfiniopRun, needs_no_input) {
  EXPECT_EQ(infiniopAvgPoolBackward(desc, workspace.data(), size, result.data(), gradient.data(), nullptr, nullptr),
            INFINI_STATUS_SUCCESS);
}

TEST_F(InfiniopRun, refuses_too_small_a_workspace) {
  if (size == 0) GTEST_SKIP() << "nothing is needed without generated code";
  EXPECT_EQ(infiniopAvgPoolBackward(desc, workspace.data(), size - 1, result.data(), gradient.data(), nullptr, nullptr),
            INFINI_STATUS_INSUFFICIENT_WORKSPACE);
  EXPECT_EQ(infiniopAvgPoolBackward(desc, nullptr, size, result.data(), gradient.data(), nullptr, nullptr),
            INFINI_STATUS_NULL_POINTER);
}

TEST_F(InfiniopRun, refuses_null_data_and_descriptors) {
  EXPECT_EQ(infiniopAvgPoolBackward(desc, workspace.data(), size, nullptr, gradient.data(), nullptr, nullptr),
            INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopAvgPoolBackward(desc, workspace.data(), size, result.data(), nullptr, nullptr, nullptr),
            INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopAvgPoolBackward(nullptr, workspace.data(), size, result.data(), gradient.data(), nullptr, nullptr),
            INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopGetAvgPoolBackwardWorkspaceSize(nullptr, &size), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopGetAvgPoolBackwardWorkspaceSize(desc, nullptr), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopDestroyAvgPoolBackwardDescriptor(nullptr), INFINI_STATUS_NULL_POINTER);
}

TEST_F(InfiniopRun, refuses_the_descriptor_of_another_operator) {
  size_t other = 0;
  EXPECT_EQ(infiniopGetMaxPoolBackwardWorkspaceSize(desc, &other), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infiniopGetMaxPoolWorkspaceSize(desc, &other), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infiniopAvgPool(desc, workspace.data(), size, result.data(), gradient.data(), nullptr),
            INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infiniopDestroyMaxPoolDescriptor(desc), INFINI_STATUS_BAD_PARAM);
}

TEST(infiniop_tensor, is_refused_where_it_makes_no_sense) {
  infiniopTensorDescriptor_t made = nullptr;
  const size_t shape[13] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, huge[2] = {size_t{1} << 40, size_t{1} << 40};
  EXPECT_EQ(infiniopCreateTensorDescriptor(nullptr, 2, shape, nullptr, INFINI_DTYPE_F32), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopCreateTensorDescriptor(&made, 2, nullptr, nullptr, INFINI_DTYPE_F32), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopCreateTensorDescriptor(&made, 13, shape, nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_BAD_TENSOR_SHAPE);
  EXPECT_EQ(infiniopCreateTensorDescriptor(&made, 2, huge, nullptr, INFINI_DTYPE_F32), INFINI_STATUS_BAD_TENSOR_SHAPE);
  EXPECT_EQ(infiniopCreateTensorDescriptor(&made, 2, shape, nullptr, INFINI_DTYPE_INVALID),
            INFINI_STATUS_BAD_TENSOR_DTYPE);
  EXPECT_EQ(infiniopCreateTensorDescriptor(&made, 2, shape, nullptr, static_cast<infiniDtype_t>(20)),
            INFINI_STATUS_BAD_TENSOR_DTYPE);
  EXPECT_EQ(infiniopDestroyTensorDescriptor(nullptr), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopCreateTensorDescriptor(&made, 0, nullptr, nullptr, INFINI_DTYPE_I64), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopDestroyTensorDescriptor(made), INFINI_STATUS_SUCCESS);
}

TEST(infiniop_runtime, has_one_cpu) {
  infiniDevice_t device = INFINI_DEVICE_NVIDIA;
  int number = -1, count = -1;
  EXPECT_EQ(infinirtInit(), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtSetDevice(INFINI_DEVICE_ASCEND, 0), INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED);
  EXPECT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 1), INFINI_STATUS_DEVICE_NOT_FOUND);
  EXPECT_EQ(infinirtGetDevice(&device, &number), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(device, INFINI_DEVICE_CPU);
  EXPECT_EQ(number, 0);
  EXPECT_EQ(infinirtGetDevice(nullptr, nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_CPU, &count), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_METAX, &count), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_CPU, nullptr), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infinirtDeviceSynchronize(), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopCreateHandle(nullptr), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infiniopDestroyHandle(nullptr), INFINI_STATUS_NULL_POINTER);
}

TEST(infiniop_runtime, gives_and_copies_memory_and_makes_streams) {
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(infinirtMalloc(&a, 8), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtMalloc(&b, 8), INFINI_STATUS_SUCCESS);
  std::memset(a, 7, 8);
  for (infinirtMemcpyKind_t kind :
       {INFINIRT_MEMCPY_H2H, INFINIRT_MEMCPY_H2D, INFINIRT_MEMCPY_D2H, INFINIRT_MEMCPY_D2D}) {
    std::memset(b, 0, 8);
    EXPECT_EQ(infinirtMemcpy(b, a, 8, kind), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(std::memcmp(a, b, 8), 0);
  }
  EXPECT_EQ(infinirtMemcpy(b, a, 8, static_cast<infinirtMemcpyKind_t>(4)), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infinirtMemcpy(nullptr, a, 8, INFINIRT_MEMCPY_H2H), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infinirtMemcpy(b, nullptr, 8, INFINIRT_MEMCPY_H2H), INFINI_STATUS_NULL_POINTER);
  EXPECT_EQ(infinirtMemcpy(nullptr, nullptr, 0, INFINIRT_MEMCPY_H2H), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(a), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(b), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(nullptr), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMalloc(nullptr, 8), INFINI_STATUS_NULL_POINTER);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(infinirtMalloc(&a, size_t{1} << 60), INFINI_STATUS_INTERNAL_ERROR);
#endif
  infinirtStream_t stream = nullptr;
  EXPECT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamCreate(nullptr), INFINI_STATUS_NULL_POINTER);
}

TEST(infiniop_status, of_failures_that_the_checks_leave) {
  using compat::infiniop::status_of;
  EXPECT_EQ(status_of(Code::success), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(status_of(Code::unimplemented), INFINI_STATUS_NOT_IMPLEMENTED);
  EXPECT_EQ(status_of(Code::invalid_shape), INFINI_STATUS_BAD_TENSOR_SHAPE);
  EXPECT_EQ(status_of(Code::invalid_data_type), INFINI_STATUS_BAD_TENSOR_DTYPE);
  EXPECT_EQ(status_of(Code::invalid_graph_op), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(status_of(Code::out_of_memory), INFINI_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(status_of(Code::runtime_error), INFINI_STATUS_INTERNAL_ERROR);
}

}  // namespace
}  // namespace partita::test
