// SPDX-License-Identifier: Apache-2.0
// Lines of the perf map: address, size, name. Each is one write, so that threads (and forked processes) may share it.
#include "src/base/perf_map.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "src/base/env.hpp"

namespace partita {
namespace {

thread_local const std::string* current_name = nullptr;

}  // namespace

bool perf_map_wanted() {
  static const bool wanted = env(Env::perf) == "1";
  return wanted;
}

std::string perf_map_path() { return "/tmp/perf-" + std::to_string(getpid()) + ".map"; }

CodeName::CodeName(std::string name) : name_(std::move(name)), before_(current_name) { current_name = &name_; }
CodeName::~CodeName() { current_name = before_; }

void add_to_perf_map(const void* code, size_t bytes) {
  if (!perf_map_wanted()) return;
  const int file = open(perf_map_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return;
  dprintf(file, "%zx %zx %s\n", static_cast<size_t>(reinterpret_cast<uintptr_t>(code)), bytes,
          current_name ? current_name->c_str() : "partita");
  close(file);
}

}  // namespace partita
