/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of the Ascend door: a program that includes "acl/acl.h" has this folder's parent as include path. */
#ifndef PARTITA_COMPAT_ACL_H
#define PARTITA_COMPAT_ACL_H

#include "acl_base.h"
#include "acl_rt.h"

/* The file is not read. A second aclInit is ACL_ERROR_REPEAT_INITIALIZE, aclFinalize before aclInit
   ACL_ERROR_UNINITIALIZE. The other calls ask for neither. */
PARTITA_ACL_API aclError aclInit(const char* configPath);
PARTITA_ACL_API aclError aclFinalize(void);

/* As with the vendor's headers the objects of operator calls come along. */
#include "../aclnn/acl_meta.h"

#endif
