// SPDX-License-Identifier: Apache-2.0
// The table of environment switches.
#include "src/base/env.hpp"

#include <array>
#include <cstdlib>

#include "src/base/check.hpp"

namespace partita {
namespace {

constexpr EnvDef kEnv[] = {
    {Env::force_kernel, "PARTITA_FORCE_KERNEL", "name of a kernel",
     "Steps whose table has a kernel of that name use it and no other; for tests and comparisons."},
    {Env::max_isa, "PARTITA_MAX_ISA", "any, avx2, avx512",
     "Best instruction set kernels may use, at most the machine's."},
    {Env::cache_capacity, "DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY", "a number, 1024 where not set",
     "Compiled partitions that are kept for equal requests; 0 keeps none."},
    {Env::deterministic, "PARTITA_DETERMINISTIC", "1",
     "Every engine is deterministic: results do not depend on the number of threads that was compiled for."},
    {Env::perf, "PARTITA_PERF", "1",
     "Writes perf-<pid>.map into the working folder; moved to /tmp, `perf report` shows the names of generated "
     "kernels with it."},
    {Env::verbose, "PARTITA_VERBOSE", "1",
     "Prints a line for each compilation and execution of a partition: pattern, operators, tensors, kernels, time in "
     "ms."},
    {Env::graph_dump, "ONEDNN_GRAPH_DUMP", "graph, subgraph, or both with a comma between",
     "The drop-in library writes graphs when they are partitioned, and partitions when they are compiled, into the "
     "working folder, as graph-<id>.json."},
    {Env::graph_dump_old, "DNNL_GRAPH_DUMP", "as ONEDNN_GRAPH_DUMP", "Older name, where the newer one is not set."},
    {Env::constants, "ONEDNN_GRAPH_CONSTANT_TENSOR_CACHE_CAPACITY", "cpu:1024;gpu:2048, in megabytes",
     "The drop-in library's capacity of the constant tensor cache for each kind of engine, 0 where not set."},
    {Env::constants_old, "DNNL_GRAPH_CONSTANT_TENSOR_CACHE_CAPACITY", "as above",
     "Older name, where the newer one is not set."},
};
constexpr size_t kEnvs = std::size(kEnv);

std::array<std::optional<std::string>, kEnvs> read_all() {
  std::array<std::optional<std::string>, kEnvs> values;
  for (size_t i = 0; i < kEnvs; ++i) {
    const char* value = std::getenv(kEnv[i].name);
    if (value && *value) values[i] = value;
  }
  return values;
}

}  // namespace

std::span<const EnvDef> all_env() { return kEnv; }

const std::optional<std::string>& env(Env key) {
  static const auto values = read_all();
  const auto i = static_cast<size_t>(key);
  PT_ASSERT(i < kEnvs && kEnv[i].key == key);
  return values[i];
}

}  // namespace partita
