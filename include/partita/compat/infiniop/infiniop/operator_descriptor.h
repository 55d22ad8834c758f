/* SPDX-License-Identifier: Apache-2.0 */
/* What the descriptors of all operators are: made once, executed by any number of threads, each with its own workspace.
 */
#ifndef PARTITA_COMPAT_INFINIOP_OPERATOR_DESCRIPTOR_H
#define PARTITA_COMPAT_INFINIOP_OPERATOR_DESCRIPTOR_H

#include "handle.h"
#include "tensor_descriptor.h"

struct InfiniopDescriptor;

#endif
