// SPDX-License-Identifier: Apache-2.0
// Reads the environment once and keeps a number for each kind of engine.
#include "src/compat/dnnl_graph/constant_capacity.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <limits>
#include <string_view>

#include "partita/engine.hpp"
#include "src/base/check.hpp"
#include "src/base/env.hpp"

namespace partita::abi {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20, kMost = std::numeric_limits<size_t>::max();

using Capacities = std::array<std::atomic<size_t>, 3>;  // by the number of the engine kind, in bytes

size_t in_bytes(size_t megabytes) { return megabytes > kMost / kMegabyte ? kMost : megabytes * kMegabyte; }

/// The library has a cache for the CPU; of a GPU's only the number is kept.
void apply(size_t bytes) {
  const Status status = set_constant_cache_capacity(EngineKind::cpu, bytes / kMegabyte);
  PT_ASSERT(status.ok());
}

/// "cpu:1024;gpu:2048"
void read(std::string_view text, Capacities& into) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    size_t megabytes = 0;
    const char* end = entry.data() + entry.size();
    const bool is_number = entry.size() > 4 && std::from_chars(entry.data() + 4, end, megabytes).ptr == end;
    if (is_number && entry.starts_with("cpu:"))
      into[dnnl_cpu] = in_bytes(megabytes);
    else if (is_number && entry.starts_with("gpu:"))
      into[dnnl_gpu] = in_bytes(megabytes);
    else
      std::fprintf(stderr, "partita: capacity of the constant tensor cache: '%.*s' is not cpu:N or gpu:N\n",
                   static_cast<int>(entry.size()), entry.data());
  }
}

Capacities& capacities() {
  static Capacities& bytes = []() -> Capacities& {
    auto& made = *new Capacities{};
    if (const auto& text = env(Env::constants) ? env(Env::constants) : env(Env::constants_old)) read(*text, made);
    apply(made[dnnl_cpu]);
    return made;
  }();
  return bytes;
}

bool is_known(dnnl_engine_kind_t kind) { return kind == dnnl_cpu || kind == dnnl_gpu; }

}  // namespace

void set_constant_capacity(dnnl_engine_kind_t kind, size_t megabytes) {
  if (is_known(kind)) capacities()[kind] = in_bytes(megabytes);
  if (kind == dnnl_cpu) apply(in_bytes(megabytes));
}

size_t constant_capacity(dnnl_engine_kind_t kind) { return is_known(kind) ? capacities()[kind] / kMegabyte : 0; }

}  // namespace partita::abi
