/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of an adaptive two-dimensional average pooling: bins of unequal size that cover the source. */
#ifndef PARTITA_COMPAT_ACLNN_ADAPTIVE_AVG_POOL2D_BACKWARD_H
#define PARTITA_COMPAT_ACLNN_ADAPTIVE_AVG_POOL2D_BACKWARD_H

#include "../aclnn/acl_meta.h"

/* Bin i of O over I cells is [floor(i*I/O), ceil((i+1)*I/O)). 4 dims (NCHW) or 3 (NCL); `out` has the shape of self.
   Errors as those of aclnnAvgPool2dBackwardGetWorkspaceSize. */
PARTITA_ACL_API aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                           const aclTensor* self, aclTensor* out,
                                                                           uint64_t* workspaceSize,
                                                                           aclOpExecutor** executor);

/* Errors as those of aclnnAvgPool2dBackward. */
PARTITA_ACL_API aclnnStatus aclnnAdaptiveAvgPool2dBackward(void* workspace, uint64_t workspaceSize,
                                                           aclOpExecutor* executor, aclrtStream stream);

#endif
