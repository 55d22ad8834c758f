/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator of the InfiniCore door. */
#ifndef PARTITA_COMPAT_INFINIOP_H
#define PARTITA_COMPAT_INFINIOP_H

#include "infiniop/handle.h"
#include "infiniop/ops/averagepool.h"
#include "infiniop/ops/averagepool_backward.h"
#include "infiniop/ops/maxpool.h"
#include "infiniop/ops/maxpool_backward.h"
#include "infiniop/tensor_descriptor.h"

#endif
