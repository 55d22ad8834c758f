// SPDX-License-Identifier: Apache-2.0
// Gradient of a maximum pooling by indices.
#include "partita/compat/ascend/aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "src/compat/ascend/checks.hpp"

using namespace partita;
using namespace partita::compat;
using namespace partita::compat::ascend;

namespace {

constexpr const char* kMax2d = "aclnnMaxPool2dWithIndicesBackward";

}  // namespace

aclnnStatus aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                              const aclTensor* indices, const aclIntArray* kernelSize,
                                                              const aclIntArray* stride, const aclIntArray* padding,
                                                              const aclIntArray* dilation, bool ceilMode,
                                                              aclTensor* gradInput, uint64_t* workspaceSize,
                                                              aclOpExecutor** executor) try {
  const FirstCall call(kMax2d, 2);
  const Named gradient{"gradOutput", gradOutput}, source{"self", self}, places{"indices", indices},
      result{"gradInput", gradInput};
  for (const Named& t : {gradient, source, places, result}) PT_CHECK(call.not_null(t.name, t.tensor));
  for (const Named& t : {gradient, source, result}) PT_CHECK(call.image(t));
  PT_CHECK(call.equal_types(gradient, source));
  PT_CHECK(call.equal_types(result, source));
  PT_CHECK(call.equal_formats(result, source));
  PT_CHECK(call.equal_shapes(result, source));
  if (indices->type != ACL_INT32 && indices->type != ACL_INT64)
    return call.invalid("indices must be s32 or s64, got data type ", static_cast<int>(indices->type));
  PT_CHECK(call.equal_shapes(places, gradient));

  Pooling p;
  p.kind = OpKind::MaxPoolIndicesBackward;
  p.ceil = ceilMode;
  PT_CHECK(call.list("kernelSize", kernelSize, 1, nullptr, p.kernel));
  PT_CHECK(call.list("stride", stride, 1, &p.kernel, p.strides));
  PT_CHECK(call.list("padding", padding, 0, nullptr, p.pads_begin));
  PT_CHECK(call.list("dilation", dilation, 1, nullptr, p.dilations));
  for (int i = 0; i < 2; ++i)
    if (p.pads_begin[i] > p.kernel[i] / 2)
      return call.invalid("padding[", i, "] is ", p.pads_begin[i], ", over half of kernelSize[", i,
                          "] = ", p.kernel[i]);
  p.pads_end = p.pads_begin;
  PT_CHECK(call.windows_fit(gradient, source, p));
  return call.finish(p, {gradient, source, places, result}, {0, 2}, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}

aclnnStatus aclnnMaxPool2dWithIndicesBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                              aclrtStream) try {
  return run(kMax2d, workspace, workspaceSize, executor);
} catch (...) {
  return no_memory(ACLNN_ERR_INNER);
}
