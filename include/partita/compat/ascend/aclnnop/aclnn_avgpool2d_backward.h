/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of a two-dimensional average pooling, in two calls: check and size, then run. */
#ifndef PARTITA_COMPAT_ACLNN_AVGPOOL2D_BACKWARD_H
#define PARTITA_COMPAT_ACLNN_AVGPOOL2D_BACKWARD_H

#include "../aclnn/acl_meta.h"

/* gradOutput and self have 4 dims (NCHW) or 3 (NCL: C, H, W), gradInput those of self; f32, f16 or bf16, all equal. A
   list of one entry counts for both axes; a null or empty stride is kernelSize. divisorOverride 0: none. With ceilMode
   windows that start behind the left padding and the source are dropped. cubeMathType: 0 keep the type, 1 f32 may be
   computed lower, 2 as f16 (not for bf16), 3 as HF32 (f32 only); Partita computes in f32 whatever is allowed.
   Empty tensors succeed with a workspace of 0.
   Errors: ACLNN_ERR_PARAM_NULLPTR for a null gradOutput, self, kernelSize, padding, gradInput, workspaceSize or
   executor; ACLNN_ERR_PARAM_INVALID for types, formats, ranks, lists and shapes that do not fit; ACLNN_ERR_INNER. */
PARTITA_ACL_API aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclIntArray* kernelSize, const aclIntArray* stride,
    const aclIntArray* padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride, int8_t cubeMathType,
    aclTensor* gradInput, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Errors: ACLNN_ERR_PARAM_NULLPTR (executor, or a workspace that is needed), ACLNN_ERR_PARAM_INVALID (an executor of
   another operator, one that was used up, a workspace smaller than the first call said), ACLNN_ERR_RUNTIME_ERROR. */
PARTITA_ACL_API aclnnStatus aclnnAvgPool2dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                                   aclrtStream stream);

#endif
