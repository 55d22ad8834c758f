// SPDX-License-Identifier: Apache-2.0
// Lines of the perf map: address, size, name. Each is one write, so that threads (and forked processes) may share it.
#include "src/base/perf_map.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "src/base/env.hpp"
#include "src/base/output_file.hpp"
#include "src/base/warn.hpp"

namespace partita {
namespace {

thread_local const std::string* current_name = nullptr;

}  // namespace

bool perf_map_wanted() {
  static const bool wanted = env_flag(Env::perf);
  return wanted;
}

std::string perf_map_path() { return "perf-" + std::to_string(getpid()) + ".map"; }

CodeName::CodeName(std::string name) : name_(std::move(name)), before_(current_name) { current_name = &name_; }
CodeName::~CodeName() { current_name = before_; }

void add_to_perf_map(const void* code, size_t bytes) {
  if (!perf_map_wanted()) return;
  char place[64];
  std::snprintf(place, sizeof(place), "%zx %zx ", static_cast<size_t>(reinterpret_cast<uintptr_t>(code)), bytes);
  const Status done = append_line_here(perf_map_path(), place + (current_name ? *current_name : "partita"));
  if (!done.ok()) warn_once(Warning::no_dump, done.text());
}

}  // namespace partita
