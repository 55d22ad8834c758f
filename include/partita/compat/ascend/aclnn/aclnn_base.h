/* SPDX-License-Identifier: Apache-2.0 */
/* Another name under which clients include the objects. */
#ifndef PARTITA_COMPAT_ACLNN_BASE_H
#define PARTITA_COMPAT_ACLNN_BASE_H

#include "acl_meta.h"

#endif
