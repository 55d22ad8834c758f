// SPDX-License-Identifier: Apache-2.0
// The result of running one file, as a table for a person and as JSON for programs.
#pragma once

#include <optional>
#include <string>

#include "src/cli/commands.hpp"
#include "src/harness/graph_run.hpp"

namespace partita::cli {

struct FileReport {
  std::string file;
  size_t ops = 0;
  bool verify = false;
  std::string error = {};                  ///< empty where the graph ran
  std::optional<GraphReport> result = {};  ///< absent where it did not

  ExitCode exit_code() const;
};

/// A line a partition and a summary; empty where there is no result.
std::string table_of(const FileReport& report);
/// One object on one line. `error` also tells a mismatch; then `verified` is false and not null.
std::string json_of(const FileReport& report);

}  // namespace partita::cli
