// SPDX-License-Identifier: Apache-2.0
// Environment switches: one table, read once; docs/generated/environment.md is made from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace partita {

enum class Env {
  force_kernel,
  max_isa,
  cache_capacity,
  deterministic,
  perf,
  verbose,
  graph_dump,
  graph_dump_old,
  constants,
  constants_old
};

struct EnvDef {
  Env key;
  const char* name;
  const char* values;
  const char* text;
};

std::span<const EnvDef> all_env();
/// The variable's value, read at the first call; absent where it is not set or empty.
const std::optional<std::string>& env(Env key);

}  // namespace partita
