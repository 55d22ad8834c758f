// SPDX-License-Identifier: Apache-2.0
// The capacity of the constant tensor cache of each kind of engine, in megabytes.
#pragma once

#include "src/compat/dnnl_graph/abi.hpp"

namespace partita::abi {

/// Kept in bytes, so that what is too large reads back as the largest number of megabytes. Thread-safe.
void set_constant_capacity(dnnl_engine_kind_t kind, size_t megabytes);
/// First what ONEDNN_GRAPH_CONSTANT_TENSOR_CACHE_CAPACITY says ("cpu:1024;gpu:2048"), else 0.
size_t constant_capacity(dnnl_engine_kind_t kind);

}  // namespace partita::abi
