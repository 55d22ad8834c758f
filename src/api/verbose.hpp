// SPDX-License-Identifier: Apache-2.0
// PARTITA_VERBOSE: a line for each compilation and execution, in the shape of oneDNN's verbose lines.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "src/api/compiled_form.hpp"

namespace partita {

/// Read once from the environment.
bool verbose();

/// "cpu,<partition id>,<pattern>,<operators>,<data formats>,<tensors>,<math mode>,<kernels>,partita"
std::string about(const CompiledForm& form);

/// "partita_verbose,v1,graph,<event>,<about>,<milliseconds><rest>" to stdout, in one piece.
void print_verbose(std::string_view event, const std::string& about, double milliseconds, std::string_view rest = {});

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace partita
