/* SPDX-License-Identifier: Apache-2.0 */
/* A handle stands for the device that operators are made for. */
#ifndef PARTITA_COMPAT_INFINIOP_HANDLE_H
#define PARTITA_COMPAT_INFINIOP_HANDLE_H

#include "../infinicore.h"

struct InfiniopHandle;
typedef struct InfiniopHandle* infiniopHandle_t;

/* A handle of the current device. Error: NULL_POINTER. */
PARTITA_INFINI_API infiniStatus_t infiniopCreateHandle(infiniopHandle_t* handle_ptr);
/* Error: NULL_POINTER. */
PARTITA_INFINI_API infiniStatus_t infiniopDestroyHandle(infiniopHandle_t handle);

#endif
