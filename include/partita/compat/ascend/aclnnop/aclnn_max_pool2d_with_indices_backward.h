/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of a two-dimensional maximum pooling by the indices that its forward call returned. */
#ifndef PARTITA_COMPAT_ACLNN_MAX_POOL2D_WITH_INDICES_BACKWARD_H
#define PARTITA_COMPAT_ACLNN_MAX_POOL2D_WITH_INDICES_BACKWARD_H

#include "../aclnn/acl_meta.h"

/* indices: s32 or s64, of the shape of gradOutput; h*W + w within the plane of self. 4 dims (NCHW) or 3 (NCL). Lists
   as in aclnnAvgPool2dBackwardGetWorkspaceSize; they say only which shape gradOutput must have.
   Errors: ACLNN_ERR_PARAM_NULLPTR for a null tensor, kernelSize, padding, dilation, workspaceSize or executor;
   ACLNN_ERR_PARAM_INVALID; ACLNN_ERR_INNER. */
PARTITA_ACL_API aclnnStatus aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclTensor* indices, const aclIntArray* kernelSize,
    const aclIntArray* stride, const aclIntArray* padding, const aclIntArray* dilation, bool ceilMode,
    aclTensor* gradInput, uint64_t* workspaceSize, aclOpExecutor** executor);

/* Errors as those of aclnnAvgPool2dBackward, and ACLNN_ERR_RUNTIME_ERROR for an index outside its plane. */
PARTITA_ACL_API aclnnStatus aclnnMaxPool2dWithIndicesBackward(void* workspace, uint64_t workspaceSize,
                                                              aclOpExecutor* executor, aclrtStream stream);

#endif
