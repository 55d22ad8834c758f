// SPDX-License-Identifier: Apache-2.0
// The partita command: finds the subcommand, reports what is wrong with the command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "src/base/text.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"

namespace partita::cli {
namespace {

constexpr auto kCommands = {add_run, add_check, add_explain, add_show, add_ops, add_bench, add_docs};

constexpr const char* kAbout =
    "Compiles operator graphs for the CPU and runs them: groups of operators become one program each.";
constexpr const char* kExamples =
    "Examples:\n"
    "  partita run --verify model.json      compile, run, and compare with plain reference loops\n"
    "  partita explain model.json           what is fused, which kernels run, and why not others\n"
    "  partita ops MaxPoolBackward          everything about one operator\n"
    "\n`partita COMMAND --help` tells more. Exit code: 0 success, 1 a wrong result, 2 an error.";

/// A word that is no command is the most likely mistake, so the nearest command is named.
std::string text_of(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
  if (const auto chosen = app.get_subcommands(); !chosen.empty())
    return str(error.what(), "; `partita ", chosen[0]->get_name(), " --help` shows what is possible");
  if (argc < 2 || argv[1][0] == '-') return str(error.what(), "; `partita --help` shows what is possible");
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  return str("`", argv[1], "` is no command", suggestion(argv[1], views), "; `partita --help` lists them");
}

int run(int argc, char** argv) {
  set_up_diagnostics();
  int exit_code = kSuccess;
  CLI::App app(kAbout, "partita");
  app.footer(kExamples);
  app.set_version_flag("--version", "partita " PARTITA_VERSION, "Print the version and stop");
  app.set_help_flag("-h,--help", "Print this help and stop");
  app.require_subcommand(0, 1);
  for (auto add : kCommands) add(app, exit_code);
  if (argc < 2) {
    std::cerr << app.help();
    return kFailure;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    report(text_of(error, app, argc, argv));
    return kFailure;
  }
  // A full disk or a closed pipe must not pass for success.
  if (!std::cout.flush() || std::fflush(stdout) != 0) {
    report("the output cannot be written");
    return kFailure;
  }
  return exit_code;
}

}  // namespace
}  // namespace partita::cli

int main(int argc, char** argv) try {
  return partita::cli::run(argc, argv);
} catch (const std::exception& e) {  // no memory, most likely: nothing of ours throws
  std::fprintf(stderr, "partita: %s\n", e.what());
  return partita::cli::kFailure;
}
