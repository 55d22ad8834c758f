/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of a three-dimensional average pooling. */
#ifndef PARTITA_COMPAT_ACLNN_AVGPOOL3D_BACKWARD_H
#define PARTITA_COMPAT_ACLNN_AVGPOOL3D_BACKWARD_H

#include "../aclnn/acl_meta.h"

/* As aclnnAvgPool2dBackwardGetWorkspaceSize, with 5 dims (NCDHW) or 4 (C, D, H, W), formats NCDHW or ND, lists of one
   or three entries, and without cubeMathType. */
PARTITA_ACL_API aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(
    const aclTensor* gradOutput, const aclTensor* self, const aclIntArray* kernelSize, const aclIntArray* stride,
    const aclIntArray* padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride, aclTensor* output,
    uint64_t* workspaceSize, aclOpExecutor** executor);

/* Errors as those of aclnnAvgPool2dBackward. */
PARTITA_ACL_API aclnnStatus aclnnAvgPool3dBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                                   aclrtStream stream);

#endif
