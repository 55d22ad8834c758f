// SPDX-License-Identifier: Apache-2.0
// Gradients of average poolings: two and three axes, and adaptive.
#include "partita/compat/ascend/aclnnop/aclnn_adaptive_avg_pool2d_backward.h"
#include "partita/compat/ascend/aclnnop/aclnn_avgpool2d_backward.h"
#include "partita/compat/ascend/aclnnop/aclnn_avgpool3d_backward.h"
#include "src/compat/ascend/checks.hpp"

using namespace partita;
using namespace partita::compat;
using namespace partita::compat::ascend;

namespace {

constexpr const char *kAvg2d = "aclnnAvgPool2dBackward", *kAvg3d = "aclnnAvgPool3dBackward",
                     *kAdaptive2d = "aclnnAdaptiveAvgPool2dBackward";

/// What a gradient, its source and the gradient's result must have in common.
aclnnStatus check_images(const FirstCall& call, Named gradient, Named self, Named result) {
  for (const Named& t : {gradient, self, result}) PT_CHECK(call.not_null(t.name, t.tensor));
  for (const Named& t : {gradient, self, result}) PT_CHECK(call.image(t));
  PT_CHECK(call.equal_types(gradient, self));
  PT_CHECK(call.equal_types(result, self));
  PT_CHECK(call.equal_formats(result, self));
  return call.equal_shapes(result, self);
}

aclnnStatus check_windows(const FirstCall& call, const aclIntArray* kernel, const aclIntArray* stride,
                          const aclIntArray* padding, Pooling& p) {
  PT_CHECK(call.list("kernelSize", kernel, 1, nullptr, p.kernel));
  PT_CHECK(call.list("stride", stride, 1, &p.kernel, p.strides));
  PT_CHECK(call.list("padding", padding, 0, nullptr, p.pads_begin));
  for (int i = 0; i < p.kernel.size(); ++i)
    if (p.pads_begin[i] > p.kernel[i] / 2)
      return call.invalid("padding[", i, "] is ", p.pads_begin[i], ", over half of kernelSize[", i,
                          "] = ", p.kernel[i]);
  p.pads_end = p.pads_begin;
  p.dilations = Dims(p.kernel.size(), 1);
  return ACLNN_SUCCESS;
}

aclnnStatus average(const FirstCall& call, Named gradient, Named self, const aclIntArray* kernel,
                    const aclIntArray* stride, const aclIntArray* padding, bool ceil, bool count_padding,
                    int64_t divisor, Named result, uint64_t* workspace_size, aclOpExecutor** executor) {
  Pooling p;
  p.ceil = ceil;
  p.divisor = count_padding ? Divisor::padded_box : Divisor::valid;
  p.divisor_override = divisor;
  PT_CHECK(check_windows(call, kernel, stride, padding, p));
  PT_CHECK(call.windows_fit(gradient, self, p));
  return call.finish(p, {gradient, self, result}, {0}, workspace_size, executor);
}

/// 0 keep, 1 f32 may be lowered, 2 f16, 3 HF32: f32 arithmetic is within what each allows.
aclnnStatus check_cube_math(const FirstCall& call, int8_t mode, const aclTensor& self) {
  if (mode < 0 || mode > 3) return call.invalid("cubeMathType is ", int{mode}, ", it must be 0, 1, 2 or 3");
  if (mode == 2 && self.type == ACL_BF16) return call.invalid("cubeMathType 2 (f16) is not for bf16 tensors");
  if (mode == 3 && self.type != ACL_FLOAT) return call.invalid("cubeMathType 3 (HF32) is for f32 tensors only");
  return ACLNN_SUCCESS;
}

}  // namespace

aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                   const aclIntArray* kernelSize, const aclIntArray* stride,
                                                   const aclIntArray* padding, bool ceilMode, bool countIncludePad,
                                                   int64_t divisorOverride, int8_t cubeMathType, aclTensor* gradInput,
                                                   uint64_t* workspaceSize, aclOpExecutor** executor) try {
  const FirstCall call(kAvg2d, 2);
  const Named gradient{"gradOutput", gradOutput}, source{"self", self}, result{"gradInput", gradInput};
  PT_CHECK(check_images(call, gradient, source, result));
  PT_CHECK(check_cube_math(call, cubeMathType, *self));
  return average(call, gradient, source, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride,
                 result, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclnnAvgPool2dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream) try {
  return run(kAvg2d, workspace, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                   const aclIntArray* kernelSize, const aclIntArray* stride,
                                                   const aclIntArray* padding, bool ceilMode, bool countIncludePad,
                                                   int64_t divisorOverride, aclTensor* output, uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) try {
  const FirstCall call(kAvg3d, 3);
  const Named gradient{"gradOutput", gradOutput}, source{"self", self}, result{"output", output};
  PT_CHECK(check_images(call, gradient, source, result));
  return average(call, gradient, source, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride,
                 result, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclnnAvgPool3dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream) try {
  return run(kAvg3d, workspace, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                           aclTensor* out, uint64_t* workspaceSize,
                                                           aclOpExecutor** executor) try {
  const FirstCall call(kAdaptive2d, 2);
  const Named gradient{"gradOutput", gradOutput}, source{"self", self}, result{"out", out};
  PT_CHECK(check_images(call, gradient, source, result));
  PT_CHECK(call.equal_batch_and_channels(gradient, source));
  Pooling p;
  p.kind = OpKind::AdaptiveAvgPoolBackward;
  return call.finish(p, {gradient, source, result}, {0}, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclnnAdaptiveAvgPool2dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                           aclrtStream) try {
  return run(kAdaptive2d, workspace, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}
