// SPDX-License-Identifier: Apache-2.0
// Reads the environment once; the number of the CPU is the library's own.
#include "src/compat/dnnl_graph/constant_capacity.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string_view>

#include "partita/engine.hpp"
#include "src/base/check.hpp"
#include "src/base/env.hpp"

namespace partita::abi {
namespace {

/// What fits a number of bytes.
constexpr size_t kMostMegabytes = std::numeric_limits<size_t>::max() >> 20;

/// There is no cache of a GPU; only the number is kept.
std::atomic<size_t> gpu_megabytes = 0;

void store(dnnl_engine_kind_t kind, size_t megabytes) {
  const size_t number = std::min(megabytes, kMostMegabytes);
  if (kind == dnnl_gpu) gpu_megabytes = number;
  if (kind != dnnl_cpu) return;
  const Status status = set_constant_cache_capacity(EngineKind::cpu, number);
  PT_ASSERT(status.ok());
}

/// "cpu:1024;gpu:2048"
void read(Env key, std::string_view text) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const auto megabytes = number_in(entry.substr(std::min<size_t>(entry.size(), 4)));
    if (megabytes && entry.starts_with("cpu:"))
      store(dnnl_cpu, *megabytes);
    else if (megabytes && entry.starts_with("gpu:"))
      store(dnnl_gpu, *megabytes);
    else
      warn_of_value(key, entry);
  }
}

/// The environment's word comes first, whoever asks.
void read_environment() {
  static const bool was_read = [] {
    const Env key = env(Env::constants) ? Env::constants : Env::constants_old;
    if (const auto& text = env(key)) read(key, *text);
    return true;
  }();
  (void)was_read;
}

}  // namespace

void set_constant_capacity(dnnl_engine_kind_t kind, size_t megabytes) {
  read_environment();
  store(kind, megabytes);
}

size_t constant_capacity(dnnl_engine_kind_t kind) {
  read_environment();
  return kind == dnnl_cpu ? constant_cache_capacity(EngineKind::cpu) : kind == dnnl_gpu ? gpu_megabytes.load() : 0;
}

}  // namespace partita::abi
