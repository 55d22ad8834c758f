// SPDX-License-Identifier: Apache-2.0
// The commands of `partita`: each adds itself to the command line, one file a command.
#pragma once

namespace CLI {
class App;
}

namespace partita::cli {

/// What the process returns.
enum ExitCode : int { kSuccess = 0, kMismatch = 1, kFailure = 2 };

/// Adds the subcommand; when it is chosen, it runs and sets `exit_code`.
void add_run(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_ops(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_docs(CLI::App& app, int& exit_code);

}  // namespace partita::cli
