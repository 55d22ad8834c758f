// SPDX-License-Identifier: Apache-2.0
// What tools learn of generated code: the perf map (PARTITA_PERF=1) its names, the code file (PARTITA_CODE=1) its
// instructions.
#pragma once

#include <cstddef>
#include <string>

namespace partita {

bool perf_map_wanted();
/// Whether either is, so that code gets a name.
bool code_names_wanted();
/// perf-<pid>.map, in the working folder; `perf` looks for it in /tmp, where the user puts it.
std::string perf_map_path();

/// Names the code that this thread generates while it lives; the innermost name counts.
class CodeName {
 public:
  explicit CodeName(std::string name);
  ~CodeName();
  CodeName(const CodeName&) = delete;
  CodeName& operator=(const CodeName&) = delete;

 private:
  std::string name_;
  const std::string* before_;
};

/// Adds one line for `bytes` of code to the map, where it is wanted; one warning where it cannot be written.
/// Thread-safe.
void add_to_perf_map(const void* code, size_t bytes);

/// code-<pid>.s, in the working folder.
std::string code_file_path();

/// Adds `bytes` of instructions to the code file, where it is wanted: text for an assembler, a label and the bytes as
/// they are, all in one line. One warning where it cannot be written. Thread-safe.
void add_to_code_file(const void* instructions, size_t bytes);

}  // namespace partita
