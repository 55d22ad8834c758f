// SPDX-License-Identifier: Apache-2.0
// The table of environment switches.
#include "src/base/env.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>

#include "src/base/check.hpp"
#include "src/base/guarded.hpp"
#include "src/base/text.hpp"
#include "src/base/warn.hpp"

namespace partita {
namespace {

constexpr const char* kFlag = "1, true, on; 0, false, off";

constexpr EnvDef kEnv[] = {
    {Env::force_kernel, "PARTITA_FORCE_KERNEL", "the name of a kernel",
     "Steps whose table has a kernel of that name use it and no other, or compilation fails; for tests and "
     "comparisons."},
    {Env::max_isa, "PARTITA_MAX_ISA", "any, avx2, avx512",
     "Best instruction set kernels may use, at most the machine's."},
    {Env::cache_capacity, "DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY", "a number (1024 where not set)",
     "Compiled partitions that are kept for equal requests; 0 keeps none."},
    {Env::deterministic, "PARTITA_DETERMINISTIC", kFlag,
     "Every engine is deterministic: results do not depend on the number of threads that was compiled for."},
    {Env::perf, "PARTITA_PERF", kFlag,
     "Writes perf-<pid>.map into the working folder; moved to /tmp, `perf report` shows the names of generated "
     "kernels with it."},
    {Env::code, "PARTITA_CODE", kFlag,
     "Appends the instructions of each generated kernel to code-<pid>.s in the working folder, bytes behind its name; "
     "`as -o code.o code-<pid>.s; objdump -d code.o` shows them."},
    {Env::verbose, "PARTITA_VERBOSE", kFlag,
     "Prints a line for each compilation and execution of a partition: pattern, operators, tensors, kernels, time in "
     "ms."},
    {Env::graph_dump, "ONEDNN_GRAPH_DUMP", "graph, subgraph, or both with a comma between",
     "The drop-in library writes graphs when they are partitioned, and partitions when they are compiled, into the "
     "working folder, as graph-<id>.json."},
    {Env::graph_dump_old, "DNNL_GRAPH_DUMP", "graph, subgraph, or both with a comma between",
     "Older name, where the newer one is not set."},
    {Env::constants, "ONEDNN_GRAPH_CONSTANT_TENSOR_CACHE_CAPACITY", "cpu:1024;gpu:2048 (in megabytes)",
     "The drop-in library's capacity of the constant tensor cache for each kind of engine, 0 where not set."},
    {Env::constants_old, "DNNL_GRAPH_CONSTANT_TENSOR_CACHE_CAPACITY", "cpu:1024;gpu:2048 (in megabytes)",
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

const EnvDef& def_of(Env key) {
  const auto i = static_cast<size_t>(key);
  PT_ASSERT(i < kEnvs && kEnv[i].key == key);
  return kEnv[i];
}

}  // namespace

std::span<const EnvDef> all_env() { return kEnv; }

const std::optional<std::string>& env(Env key) {
  static const auto values = read_all();
  return values[static_cast<size_t>(def_of(key).key)];
}

bool env_flag(Env key) {
  const std::optional<std::string>& value = env(key);
  if (!value) return false;
  const std::optional<bool> flag = flag_in(*value);
  if (!flag) warn_of_value(key, *value);
  return flag.value_or(false);
}

std::optional<size_t> env_number(Env key) {
  const std::optional<std::string>& value = env(key);
  if (!value) return {};
  const std::optional<size_t> number = number_in(*value);
  if (!number) warn_of_value(key, *value);
  return number;
}

void warn_of_value(Env key, std::string_view value, std::string_view hint) noexcept {
  static std::array<std::atomic<bool>, kEnvs> warned{};
  const EnvDef& def = def_of(key);
  if (warned[static_cast<size_t>(key)].exchange(true)) return;
  // Without memory for the text there is no warning, like any other line of text.
  (void)guarded([&]() -> Status {
    print_warning(str(def.name, " takes ", def.values, "; `", value, "` is ignored", hint));
    return {};
  });
}

std::optional<bool> flag_in(std::string_view text) {
  if (text == "1" || text == "true" || text == "on") return true;
  if (text == "0" || text == "false" || text == "off") return false;
  return {};
}

std::optional<size_t> number_in(std::string_view text) {
  size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return {};
  return number;
}

}  // namespace partita
