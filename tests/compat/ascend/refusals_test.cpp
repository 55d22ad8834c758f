// SPDX-License-Identifier: Apache-2.0
// Codes and texts of the Ascend door's first calls: one row for each thing that can be wrong.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "aclnnop/aclnn_adaptive_avg_pool2d_backward.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "tests/compat/ascend/client.hpp"

namespace partita::test {
namespace {

/// A tensor as one row wants it.
struct T {
  Dims dims;
  aclDataType type = ACL_FLOAT;
  aclFormat format = ACL_FORMAT_NCHW;
  bool null = false;
  Dims strides{};

  TensorPtr make(std::vector<char>& memory) const {
    if (null) return {nullptr, aclDestroyTensor};
    memory.resize(65536);
    const int64_t storage = 8192;
    return {aclCreateTensor(dims.begin(), static_cast<uint64_t>(dims.size()), type,
                            strides.empty() ? nullptr : strides.begin(), 0, format, &storage, 1, memory.data()),
            aclDestroyTensor};
  }
};

/// All that the four first calls take; a row changes what it is about.
struct Call {
  T gradient{{1, 2, 2, 2}}, self{{1, 2, 4, 4}}, result{{1, 2, 4, 4}}, indices{{1, 2, 2, 2}, ACL_INT64};
  std::optional<Dims> kernel = Dims{2, 2}, stride = Dims{2, 2}, padding = Dims{0, 0}, dilation = Dims{1, 1};
  bool ceil = false;
  int8_t cube = 0;
  bool size_null = false, executor_null = false;
};

ListPtr list(const std::optional<Dims>& values) {
  return values ? acl_list(*values) : ListPtr{nullptr, aclDestroyIntArray};
}

enum class Op { average2, average3, adaptive, maximum };

aclnnStatus first_call(Op op, const Call& c, uint64_t& size) {
  std::array<std::vector<char>, 4> memory;
  const TensorPtr g = c.gradient.make(memory[0]), s = c.self.make(memory[1]), r = c.result.make(memory[2]),
                  i = c.indices.make(memory[3]);
  const ListPtr kernel = list(c.kernel), stride = list(c.stride), padding = list(c.padding),
                dilation = list(c.dilation);
  aclOpExecutor* executor = nullptr;
  uint64_t* const sizes = c.size_null ? nullptr : &size;
  aclOpExecutor** const executors = c.executor_null ? nullptr : &executor;
  aclnnStatus status = ACLNN_SUCCESS;
  switch (op) {
    case Op::average2:
      status = aclnnAvgPool2dBackwardGetWorkspaceSize(g.get(), s.get(), kernel.get(), stride.get(), padding.get(),
                                                      c.ceil, true, 0, c.cube, r.get(), sizes, executors);
      break;
    case Op::average3:
      status = aclnnAvgPool3dBackwardGetWorkspaceSize(g.get(), s.get(), kernel.get(), stride.get(), padding.get(),
                                                      c.ceil, true, 0, r.get(), sizes, executors);
      break;
    case Op::adaptive:
      status = aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(g.get(), s.get(), r.get(), sizes, executors);
      break;
    case Op::maximum:
      status = aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(g.get(), s.get(), i.get(), kernel.get(), stride.get(),
                                                                 padding.get(), dilation.get(), c.ceil, r.get(), sizes,
                                                                 executors);
      break;
  }
  if (executor) aclDestroyAclOpExecutor(executor);
  return status;
}

struct Row {
  const char* name;
  Op op;
  std::function<void(Call&)> change;
  aclnnStatus code;
  const char* text;  ///< behind the call's name
};

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kInvalid = ACLNN_ERR_PARAM_INVALID;

void cubes(Call& c) {
  c.gradient = {{1, 2, 2, 2, 2}, ACL_FLOAT, ACL_FORMAT_NCDHW};
  c.self = c.result = {{1, 2, 4, 4, 4}, ACL_FLOAT, ACL_FORMAT_NCDHW};
  c.kernel = c.stride = Dims{2, 2, 2};
  c.padding = Dims{0, 0, 0};
}

// clang-format off
const Row kRows[] = {
  {"null_gradient", Op::average2, [](Call& c) { c.gradient.null = true; }, kNull, "gradOutput is null"},
  {"null_self", Op::average2, [](Call& c) { c.self.null = true; }, kNull, "self is null"},
  {"null_kernel", Op::average2, [](Call& c) { c.kernel.reset(); }, kNull, "kernelSize is null"},
  {"null_padding", Op::average2, [](Call& c) { c.padding.reset(); }, kNull, "padding is null"},
  {"null_result", Op::average2, [](Call& c) { c.result.null = true; }, kNull, "gradInput is null"},
  {"null_size", Op::average2, [](Call& c) { c.size_null = true; }, kNull, "workspaceSize is null"},
  {"null_executor", Op::average2, [](Call& c) { c.executor_null = true; }, kNull, "executor is null"},
  {"dtype", Op::average2, [](Call& c) { c.gradient.type = c.self.type = c.result.type = ACL_DOUBLE; }, kInvalid,
   "gradOutput is data type 11, it must be f32, f16 or bf16"},
  {"dtypes_differ", Op::average2, [](Call& c) { c.gradient.type = ACL_FLOAT16; }, kInvalid,
   "gradOutput is f16, self is f32"},
  {"result_dtype", Op::average2, [](Call& c) { c.result.type = ACL_BF16; }, kInvalid, "gradInput is bf16, self is f32"},
  {"format", Op::average2, [](Call& c) { c.self.format = ACL_FORMAT_NHWC; }, kInvalid,
   "self with 4 dims is NHWC, it must be NCHW, ND or (three dims) NCL"},
  {"formats_differ", Op::average2, [](Call& c) { c.result.format = ACL_FORMAT_ND; }, kInvalid,
   "gradInput is ND, self is NCHW"},
  {"ncl_with_batch", Op::average2, [](Call& c) { c.self.format = ACL_FORMAT_NCL; }, kInvalid,
   "self with 4 dims is NCL, it must be NCHW, ND or (three dims) NCL"},
  {"rank", Op::average2, [](Call& c) { c.gradient.dims = {2, 2}; }, kInvalid,
   "gradOutput has 2 dims, it must have 3 or 4"},
  {"negative_dim", Op::average2, [](Call& c) { c.self.dims = {1, 2, -4, 4}; }, kInvalid,
   "self is [1,2,-4,4], no dim may be negative"},
  {"result_shape", Op::average2, [](Call& c) { c.result.dims = {1, 2, 4, 5}; }, kInvalid,
   "gradInput is [1,2,4,5], self is [1,2,4,4]"},
  {"channels", Op::average2, [](Call& c) { c.gradient.dims = {1, 3, 2, 2}; }, kInvalid,
   "gradOutput is [1,3,2,2], self is [1,2,4,4]: batch and channels must agree"},
  {"pooled_shape", Op::average2, [](Call& c) { c.gradient.dims = {1, 2, 2, 3}; }, kInvalid,
   "gradOutput is [1,2,2,3], pooling self [1,2,4,4] makes 2 windows on spatial axis 1"},
  {"window_too_large", Op::average2, [](Call& c) { c.kernel = Dims{5, 2}; }, kInvalid,
   "a window of 5 cells does not fit into 4 cells of self with padding 0 on both sides (spatial axis 0)"},
  {"kernel_entries", Op::average2, [](Call& c) { c.kernel = Dims{2, 2, 2}; }, kInvalid,
   "kernelSize has 3 entries, it must have one or 2"},
  {"kernel_sign", Op::average2, [](Call& c) { c.kernel = Dims{2, 0}; }, kInvalid,
   "kernelSize[1] is 0, it must be at least 1"},
  {"stride_entries", Op::average2, [](Call& c) { c.stride = Dims{1, 1, 1}; }, kInvalid,
   "stride has 3 entries, it must have none, one or 2"},
  {"stride_sign", Op::average2, [](Call& c) { c.stride = Dims{0, 1}; }, kInvalid,
   "stride[0] is 0, it must be at least 1"},
  {"padding_entries", Op::average2, [](Call& c) { c.padding = Dims{}; }, kInvalid,
   "padding has 0 entries, it must have one or 2"},
  {"padding_sign", Op::average2, [](Call& c) { c.padding = Dims{-1}; }, kInvalid,
   "padding[0] is -1, it must be at least 0"},
  {"padding_over_half", Op::average2, [](Call& c) { c.padding = Dims{0, 2}; }, kInvalid,
   "padding[1] is 2, over half of kernelSize[1] = 2"},
  {"cube_range", Op::average2, [](Call& c) { c.cube = 4; }, kInvalid, "cubeMathType is 4, it must be 0, 1, 2 or 3"},
  {"cube_negative", Op::average2, [](Call& c) { c.cube = -1; }, kInvalid,
   "cubeMathType is -1, it must be 0, 1, 2 or 3"},
  {"cube_f16_of_bf16", Op::average2,
   [](Call& c) { c.cube = 2; c.gradient.type = c.self.type = c.result.type = ACL_BF16; }, kInvalid,
   "cubeMathType 2 (f16) is not for bf16 tensors"},
  {"cube_hf32_of_f16", Op::average2,
   [](Call& c) { c.cube = 3; c.gradient.type = c.self.type = c.result.type = ACL_FLOAT16; }, kInvalid,
   "cubeMathType 3 (HF32) is for f32 tensors only"},
  {"result_shares_memory", Op::average2, [](Call& c) { c.result.strides = {32, 16, 0, 1}; }, kInvalid,
   "gradInput has strides [32,16,0,1], with which cells of [1,2,4,4] share memory"},
  {"volume_rank", Op::average3, [](Call& c) { cubes(c); c.self.dims = {2, 4, 4}; }, kInvalid,
   "self has 3 dims, it must have 4 or 5"},
  {"volume_format", Op::average3, [](Call& c) { cubes(c); c.self.format = ACL_FORMAT_NCHW; }, kInvalid,
   "self with 5 dims is NCHW, it must be NCDHW or ND"},
  {"volume_result", Op::average3, [](Call& c) { cubes(c); c.result.null = true; }, kNull, "output is null"},
  {"volume_list", Op::average3, [](Call& c) { cubes(c); c.kernel = Dims{2, 2}; }, kInvalid,
   "kernelSize has 2 entries, it must have one or 3"},
  {"adaptive_result", Op::adaptive, [](Call& c) { c.result.null = true; }, kNull, "out is null"},
  {"adaptive_channels", Op::adaptive, [](Call& c) { c.gradient.dims = {2, 2, 2, 2}; }, kInvalid,
   "gradOutput is [2,2,2,2], self is [1,2,4,4]: batch and channels must agree"},
  {"null_indices", Op::maximum, [](Call& c) { c.indices.null = true; }, kNull, "indices is null"},
  {"null_dilation", Op::maximum, [](Call& c) { c.dilation.reset(); }, kNull, "dilation is null"},
  {"index_dtype", Op::maximum, [](Call& c) { c.indices.type = ACL_UINT8; }, kInvalid,
   "indices must be s32 or s64, got data type 4"},
  {"index_shape", Op::maximum, [](Call& c) { c.indices.dims = {1, 2, 2, 1}; }, kInvalid,
   "indices is [1,2,2,1], gradOutput is [1,2,2,2]"},
  {"dilation_sign", Op::maximum, [](Call& c) { c.dilation = Dims{1, 0}; }, kInvalid,
   "dilation[1] is 0, it must be at least 1"},
  {"maximum_padding", Op::maximum, [](Call& c) { c.padding = Dims{2}; }, kInvalid,
   "padding[0] is 2, over half of kernelSize[0] = 2"},
};
// clang-format on

constexpr const char* kNames[] = {"aclnnAvgPool2dBackward", "aclnnAvgPool3dBackward", "aclnnAdaptiveAvgPool2dBackward",
                                  "aclnnMaxPool2dWithIndicesBackward"};

class AscendRefusals : public testing::TestWithParam<Row> {};

TEST_P(AscendRefusals, give_code_and_text) {
  const Row& row = GetParam();
  Call call;
  row.change(call);
  uint64_t size = 0;
  EXPECT_EQ(first_call(row.op, call, size), row.code);
  EXPECT_EQ(last_error(), str(kNames[static_cast<int>(row.op)], ": ", row.text));
}

INSTANTIATE_TEST_SUITE_P(each, AscendRefusals, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ascend_first_call, takes_what_the_rows_start_from) {
  for (Op op : {Op::average2, Op::adaptive, Op::maximum}) {
    uint64_t size = 0;
    EXPECT_EQ(first_call(op, Call(), size), ACLNN_SUCCESS) << last_error();
  }
  Call call;
  cubes(call);
  uint64_t size = 0;
  EXPECT_EQ(first_call(Op::average3, call, size), ACLNN_SUCCESS) << last_error();
}

TEST(ascend_first_call, takes_one_entry_for_all_axes_and_no_stride) {
  Call call;
  call.kernel = Dims{2};
  call.padding = Dims{0};
  uint64_t size = 0;
  for (const auto& stride : {std::optional<Dims>(), std::optional<Dims>(Dims{}), std::optional<Dims>(Dims{2})}) {
    call.stride = stride;
    EXPECT_EQ(first_call(Op::average2, call, size), ACLNN_SUCCESS) << last_error();
  }
}

TEST(ascend_first_call, takes_every_cube_math_type_that_fits) {
  for (int8_t cube : {0, 1, 2, 3}) {
    Call call;
    call.cube = cube;
    uint64_t size = 0;
    EXPECT_EQ(first_call(Op::average2, call, size), ACLNN_SUCCESS) << last_error();
  }
}

TEST(ascend_first_call, of_empty_tensors_needs_no_workspace) {
  for (Op op : {Op::average2, Op::adaptive, Op::maximum})
    for (const auto& [source, pooled] :
         {std::pair(Dims{0, 2, 4, 4}, Dims{0, 2, 2, 2}), std::pair(Dims{1, 0, 4, 4}, Dims{1, 0, 2, 2})}) {
      Call call;
      call.self.dims = call.result.dims = source;
      call.gradient.dims = call.indices.dims = pooled;
      uint64_t size = 77;
      EXPECT_EQ(first_call(op, call, size), ACLNN_SUCCESS) << last_error();
      EXPECT_EQ(size, 0u);
    }
}

}  // namespace
}  // namespace partita::test
