// SPDX-License-Identifier: Apache-2.0
// partita run: compiles and executes graphs, and compares the results with the references.
#include <CLI/CLI.hpp>
#include <iostream>

#include "src/base/check.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"
#include "src/cli/graph_options.hpp"
#include "src/cli/run_report.hpp"

namespace partita::cli {
namespace {

struct RunOptions {
  GraphOptions graphs;
  RunSettings settings;
  bool json = false;
};

FileReport run_file(const std::string& file, const RunOptions& options, const std::function<void(double)>& progress) {
  FileReport report{.file = file, .verify = options.settings.verify};
  Result<LoadedGraph> loaded = load_graph(file, options.graphs.overrides);
  if (!loaded.ok()) {
    report.error = loaded.status().text();
    return report;
  }
  report.ops = loaded->value.ops().size();
  Result<GraphReport> result = run_graph(loaded->value, options.settings, progress);
  if (result.ok())
    report.result = std::move(result).value();
  else
    report.error = with_line(std::move(result).take_status(), loaded->source).text();
  return report;
}

int run_files(const RunOptions& options) {
  const auto files = graph_files(options.graphs.paths);
  if (!files.ok()) {
    report(files.status());
    return kFailure;
  }
  int exit_code = kSuccess;
  ProgressBar bar(files->size());
  for (size_t i = 0; i < files->size(); ++i) {
    const std::string& file = (*files)[i];
    bar.show(i, file, 0);
    const FileReport done = run_file(file, options, [&](double share) { bar.show(i, file, share); });
    bar.hide();
    std::cout << (options.json ? json_of(done) : table_of(done)) << std::flush;
    if (!done.error.empty()) report(done.error);
    exit_code = std::max(exit_code, static_cast<int>(done.exit_code()));
  }
  return exit_code;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Compile and run graphs; show what was fused, times, and the check");
  add_graph_options(*command, options->graphs);
  RunSettings& s = options->settings;
  command->add_flag("--verify", s.verify, "Compare every result with plain reference loops");
  command->add_flag("--open-layouts", s.open_layouts,
                    "Leave it to Partita how tensors between partitions lie in memory, whatever the graph says");
  command->add_option("--reps", s.reps, "Timed executions of each partition; the median counts (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000).description(""));
  command->add_option("--seed", s.seed, "Seed of the input data (1)")->type_name("S");
  command->add_option("--threads", s.threads, "Threads; 0 means as many as OpenMP gives (0)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""));
  command->add_flag("--deterministic", s.deterministic, "The same bits whatever the number of threads");
  add_policy(*command, s.policy);
  command
      ->add_option_function<std::string>(
          "--format", [options](const std::string& format) { options->json = format == "json"; },
          "table: for a person (the default); json: one object a file, each on its line")
      ->type_name("table|json")
      ->check(CLI::IsMember({"table", "json"}).description(""));
  command->footer(
      "Inputs are filled with repeatable numbers. GB/s counts what a partition reads and writes.\n"
      "Exit code: 0 success, 1 a result differs from the reference, 2 an error. A failing file stops no other.\n\n"
      "Examples:\n"
      "  partita run --verify --reps 20 model.json\n"
      "  partita run --format=json graphs/ > report.jsonl\n"
      "  partita run model.json --mb 32 --dt bf16 --op-attrs 7:axis:-1");
  command->callback([options, &exit_code] { exit_code = run_files(*options); });
}

}  // namespace partita::cli
