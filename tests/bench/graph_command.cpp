// SPDX-License-Identifier: Apache-2.0
// The command `graphs` of partita_bench.
#include <omp.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>

#include "src/base/text.hpp"
#include "tests/bench/graph_bench.hpp"
#include "tests/bench/report.hpp"

namespace partita::bench {
namespace {

namespace fs = std::filesystem;

struct GraphOptions {
  std::vector<std::string> paths;
  std::string filter, json;
  GraphSettings settings{.seconds = 0.15, .threads = 0};
  bool list = false;
};

struct GraphFile {
  std::string path, name;
};

/// Files below the folders and the files themselves, whose names match.
std::vector<GraphFile> files_of(const GraphOptions& options) {
  std::vector<std::string> paths = options.paths;
  if (paths.empty())
    for (const char* folder : {PARTITA_SOURCE_DIR "/tests/data/models", PARTITA_SOURCE_DIR "/tests/data/chain",
                               PARTITA_SOURCE_DIR "/tests/data/training", PARTITA_BENCH_MODELS})
      if (fs::is_directory(folder)) paths.emplace_back(folder);
  const std::regex wanted(options.filter, std::regex::ECMAScript | std::regex::icase);
  std::vector<GraphFile> files;
  for (const std::string& path : paths) {
    std::vector<std::string> found;
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator(path))
        if (entry.path().extension() == ".json") found.push_back(entry.path().string());
      std::ranges::sort(found);
    } else {
      found.push_back(path);
    }
    for (const std::string& file : found) {
      const fs::path base = fs::is_directory(path) ? fs::path(path).lexically_normal() : fs::path(path).parent_path();
      const fs::path folder = base.filename().empty() ? base.parent_path().filename() : base.filename();
      const std::string name = (folder / fs::path(file).lexically_relative(base)).string();
      if (std::regex_search(name, wanted)) files.push_back({file, name});
    }
  }
  return files;
}

int run(const GraphOptions& options) {
  const std::vector<GraphFile> files = files_of(options);
  if (files.empty()) {
    std::cerr << "partita_bench: no graph matches `" << options.filter << "`; --list shows all\n";
    return 1;
  }
  if (options.list) {
    for (const GraphFile& file : files) std::cout << file.name << '\n';
    return 0;
  }
  std::ofstream json;
  if (!open_json(options.json, json)) return 1;
  limit_onednn_isa();
  GraphSettings settings = options.settings;
  if (settings.processor_time) settings.threads = 1;
  if (settings.threads == 0) settings.threads = omp_get_max_threads();
  omp_set_num_threads(settings.threads);
  const Machine machine = this_machine(settings.threads);
  std::cout << text_of(machine)
            << "Medians of interleaved turns in ms, memory warm. x oneDNN: its time, one operator after another, / "
               "Partita's;\nL: it was faster with channels last between operators. own: operators without primitive. "
               "scratch: peak in KB\nbeside inputs and results.\n\n"
            << graph_heading();
  std::vector<GraphRow> rows;
  for (const GraphFile& file : files) {
    rows.push_back(run_graph(file.path, file.name, settings));
    std::cout << graph_line(rows.back()) << std::flush;
  }
  std::cout << graph_summary(rows) << std::flush;
  if (json.is_open()) json << graphs_json(machine, rows) << std::flush;
  return std::ranges::all_of(rows, [](const GraphRow& row) { return row.error.empty(); }) ? 0 : 1;
}

}  // namespace

void add_graphs(CLI::App& app, std::optional<int>& exit_code) {
  const auto options = std::make_shared<GraphOptions>();
  CLI::App* command =
      app.add_subcommand("graphs", "Measure whole graphs against oneDNN's primitives, one operator after another");
  command->add_option("FILE", options->paths, "Graphs as JSON, folders of them; none: those that come with Partita")
      ->type_name("")
      ->check(CLI::ExistingPath.description(""));
  command->add_option("--filter", options->filter, "Only graphs whose name (see --list) matches")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_filter, ""));
  command->add_option("--json", options->json, "Write every figure and the machine to FILE")->type_name("FILE");
  command
      ->add_option("--min-time", options->settings.seconds, "Seconds each side of a graph is measured at least (0.15)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1e-6, 3600.0).description(""));
  command->add_option("--threads", options->settings.threads, "Threads; 0 means as many as OpenMP gives (0)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""));
  command->add_flag("--processor-time", options->settings.processor_time,
                    "Count what one thread computes instead of what passes, for a busy machine; implies --threads 1");
  command->add_flag("--list", options->list, "Print the names of the graphs");
  command->footer("How the other side is built and how to read the table: docs/benchmarks.md.");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace partita::bench
