// SPDX-License-Identifier: Apache-2.0
// Lines of the perf map: address, size, name; of the code file: label, bytes. Each is one write, so that threads (and
// forked processes) may share them.
#include "src/base/perf_map.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "src/base/env.hpp"
#include "src/base/output_file.hpp"
#include "src/base/warn.hpp"

namespace partita {
namespace {

thread_local const std::string* current_name = nullptr;

std::string name_of_code() { return current_name ? *current_name : "partita"; }

bool code_file_wanted() {
  static const bool wanted = env_flag(Env::code);
  return wanted;
}

void append(const std::string& file, const std::string& line) {
  const Status done = append_line_here(file, line);
  if (!done.ok()) warn_once(Warning::no_dump, done.text());
}

}  // namespace

bool perf_map_wanted() {
  static const bool wanted = env_flag(Env::perf);
  return wanted;
}

bool code_names_wanted() { return perf_map_wanted() || code_file_wanted(); }

std::string perf_map_path() { return "perf-" + std::to_string(getpid()) + ".map"; }

CodeName::CodeName(std::string name) : name_(std::move(name)), before_(current_name) { current_name = &name_; }
CodeName::~CodeName() { current_name = before_; }

void add_to_perf_map(const void* code, size_t bytes) {
  if (!perf_map_wanted()) return;
  char place[64];
  std::snprintf(place, sizeof(place), "%zx %zx ", static_cast<size_t>(reinterpret_cast<uintptr_t>(code)), bytes);
  append(perf_map_path(), place + name_of_code());
}

std::string code_file_path() { return "code-" + std::to_string(getpid()) + ".s"; }

void add_to_code_file(const void* instructions, size_t bytes) {
  if (!code_file_wanted()) return;
  static std::atomic<size_t> kernels = 0;  // labels are unique
  std::string line = "\"" + name_of_code() + " #" + std::to_string(kernels++) + "\":";
  for (size_t i = 0; i < bytes; ++i) {
    char byte[16];
    std::snprintf(byte, sizeof(byte), i == 0 ? " .byte %u" : ",%u", static_cast<const uint8_t*>(instructions)[i]);
    line += byte;
  }
  append(code_file_path(), line);
}

}  // namespace partita
