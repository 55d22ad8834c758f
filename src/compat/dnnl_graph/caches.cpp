// SPDX-License-Identifier: Apache-2.0
// Capacities of the compiled-partition cache and of the constant tensor cache.
#include <limits>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/constant_capacity.hpp"
#include "src/compile/compile.hpp"

using namespace partita;
using namespace partita::abi;

dnnl_status_t dnnl_graph_get_compiled_partition_cache_capacity(int* capacity) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"capacity", capacity}}));
    *capacity = static_cast<int>(std::min<size_t>(cache_capacity(), std::numeric_limits<int>::max()));
    return {};
  });
}

dnnl_status_t dnnl_graph_set_compiled_partition_cache_capacity(int capacity) {
  return answer_of([&]() -> Status {
    if (capacity < 0) return fail(Code::invalid_arguments, str("`capacity` must not be negative, found ", capacity));
    set_cache_capacity(static_cast<size_t>(capacity));
    return {};
  });
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache(int flag) {
  return answer_of([&]() -> Status {
    if (flag < 0) return fail(Code::invalid_arguments, str("`flag` must not be negative, found ", flag));
    const size_t megabytes = flag == 0 ? 0 : std::numeric_limits<size_t>::max();
    for (dnnl_engine_kind_t kind : {dnnl_cpu, dnnl_gpu}) set_constant_capacity(kind, megabytes);
    return {};
  });
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache(int* flag) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"flag", flag}}));
    *flag = constant_capacity(dnnl_cpu) != 0 || constant_capacity(dnnl_gpu) != 0;
    return {};
  });
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t size) {
  return answer_of([&]() -> Status {
    set_constant_capacity(eng_kind, size);
    return {};
  });
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t* size) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"size", size}}));
    *size = constant_capacity(eng_kind);
    return {};
  });
}
