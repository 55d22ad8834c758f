// SPDX-License-Identifier: Apache-2.0
// Environment switches: one table, read once; docs/generated/environment.md is made from it.
#pragma once

#include <cstddef>
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
  code,
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
/// A switch: false where it is not set; a value that is none of flag_in's is told of and means false.
bool env_flag(Env key);
/// A number: absent where it is not set; a value that is not one of number_in's is told of and absent.
std::optional<size_t> env_number(Env key);
/// Says on stderr, once a process for each variable, that `value` is none of its values and is ignored. `hint` follows
/// the sentence.
void warn_of_value(Env key, std::string_view value, std::string_view hint = {}) noexcept;

/// 1, true, on; 0, false, off; absent for anything else.
std::optional<bool> flag_in(std::string_view text);
/// Decimal digits alone, within size_t; absent for anything else.
std::optional<size_t> number_in(std::string_view text);

}  // namespace partita
