// SPDX-License-Identifier: Apache-2.0
// The libdnnl of the process: engines and streams are its objects and are touched only through its public functions,
// found at run time. Partita's own copy of oneDNN is another library with hidden symbols and never sees them.
#pragma once

#include "src/compat/dnnl_graph/abi.hpp"

namespace partita::abi::host {

/// Failures are runtime_error where the process has no libdnnl, else what libdnnl answers.
Result<dnnl_engine_t> make_engine(dnnl_engine_kind_t kind, size_t index);
void destroy_engine(dnnl_engine_t engine);
Result<dnnl_engine_kind_t> kind_of(dnnl_engine_t engine);
Result<dnnl_engine_t> engine_of(dnnl_stream_t stream);

/// strict where there is no libdnnl.
FpMath default_math_mode();

/// False where libdnnl was built on OpenMP (or anything but thread pools).
bool has_threadpools();
/// The stream's thread pool, a dnnl::threadpool_interop::threadpool_iface; null where it has none.
void* threadpool_of(dnnl_stream_t stream);

}  // namespace partita::abi::host
