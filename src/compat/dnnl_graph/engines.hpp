// SPDX-License-Identifier: Apache-2.0
// Which allocator a libdnnl engine has. libdnnl's engines carry none for us, so there is a table.
#pragma once

#include <memory>

#include "partita/engine.hpp"
#include "src/compat/dnnl_graph/abi.hpp"

/// The handle of the C interface.
struct dnnl_graph_allocator {
  partita::allocator memory;
};

namespace partita::abi {

/// From now on the engine at this address has this allocator. An engine that was there before is gone, and with it what
/// was compiled for it. Thread-safe, as all here.
void register_engine(dnnl_engine_t handle, const dnnl_graph_allocator& memory);

/// The registered engine, else one with the standard allocator (such engines are all alike). Never null.
std::shared_ptr<const engine> engine_at(dnnl_engine_t handle);

/// Forgets the engines of an allocator and what was compiled for them.
void forget_allocator(const dnnl_graph_allocator& memory);

}  // namespace partita::abi
