// SPDX-License-Identifier: Apache-2.0
// partita bench: one benchmark a graph, its partitions compiled once and executed in each iteration.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"
#include "src/cli/graph_options.hpp"
#include "src/harness/prepared_graph.hpp"

namespace partita::cli {
namespace {

struct BenchOptions {
  GraphOptions graphs;
  Policy policy = Policy::fusion;
  int threads = 0;
  double seconds = 0.5;
  bool json = false;
};

/// The graph being measured. Only one is in memory at a time, and it stays there while the library repeats its case
/// with more iterations.
class Current {
 public:
  explicit Current(const BenchOptions& options) : options_(options) {}

  /// Null after a failure, which is reported once a file.
  PreparedGraph* graph_of(const std::string& file) {
    if (file_ == file) return prepared_.get();
    file_ = file;
    prepared_.reset();
    auto made = prepare(file);
    if (made.ok())
      prepared_ = std::make_unique<PreparedGraph>(std::move(made).value());
    else
      fail_with(made.status());
    return prepared_.get();
  }
  void fail_with(const Status& failure) {
    report(failure);
    failed_ = true;
  }
  bool failed() const { return failed_; }

 private:
  Result<PreparedGraph> prepare(const std::string& file) const {
    PT_ASSIGN(LoadedGraph loaded, load_graph(file, options_.graphs.overrides));
    if (Status s = loaded.value.finalize(); !s.ok()) return with_line(std::move(s), loaded.source);
    auto made = PreparedGraph::make(std::move(loaded.value), options_.policy, options_.threads);
    return made.ok() ? std::move(made) : Result<PreparedGraph>(with_line(std::move(made).take_status(), loaded.source));
  }

  const BenchOptions& options_;
  std::string file_;
  std::unique_ptr<PreparedGraph> prepared_;
  bool failed_ = false;
};

void measure(benchmark::State& state, Current& current, const std::string& file) {
  PreparedGraph* graph = current.graph_of(file);
  if (!graph) return state.SkipWithError("the graph does not compile");
  const double start = now_ms();
  for (auto _ : state) {
    if (Status s = graph->execute(); !s.ok()) {
      current.fail_with(std::move(s).at(file));
      return state.SkipWithError("the execution failed");
    }
  }
  const double gigabytes = static_cast<double>(graph->bytes()) * static_cast<double>(state.iterations()) / 1e9;
  state.counters["GB/s"] = gigabytes / (now_ms() - start) * 1e3;
  state.counters["partitions"] = static_cast<double>(graph->parts().size());
}

const std::string kShipped = PARTITA_SOURCE_DIR "/tests/data/training";

/// The files asked for, or the training graphs that come with the sources.
Result<std::vector<std::string>> bench_files(const std::vector<std::string>& paths) {
  if (!paths.empty()) return graph_files(paths);
  std::error_code error;
  if (!std::filesystem::is_directory(kShipped, error))
    return fail(Code::invalid_arguments,
                str("the shipped graphs are not at ", kShipped, " any more; name the files to measure"));
  return graph_files({kShipped});
}

/// A shipped graph's place is of no interest.
std::string case_name(const std::string& file) {
  return file.starts_with(kShipped) ? file.substr(kShipped.size() + 1) : file;
}

int bench(const BenchOptions& options) {
  const auto files = bench_files(options.graphs.paths);
  if (!files.ok()) {
    report(files.status());
    return kFailure;
  }
  // The library takes its settings as a command line only.
  std::vector<std::string> words = {"partita bench", str("--benchmark_min_time=", options.seconds),
                                    str("--benchmark_format=", options.json ? "json" : "console")};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  Current current(options);
  for (const std::string& file : *files)
    benchmark::RegisterBenchmark(case_name(file).c_str(),
                                 [&current, file](benchmark::State& state) { measure(state, current, file); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  benchmark::RunSpecifiedBenchmarks();
  return current.failed() ? kFailure : kSuccess;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure graphs: time of an execution and GB/s");
  add_graph_options(*command, options->graphs, /*one_file=*/false, /*required=*/false);
  add_policy(*command, options->policy);
  command->add_option("--threads", options->threads, "Threads; 0 means as many as OpenMP gives (0)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""));
  command->add_option("--min-time", options->seconds, "Seconds each graph is measured at least (0.5)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 3600.0).description(""));
  command->add_flag("--json", options->json, "Print Google Benchmark's JSON");
  command->footer(
      "Each graph is compiled once; one iteration executes all its partitions. GB/s counts what they read and write.\n"
      "Without files the training graphs that come with Partita's sources are measured.\n\n"
      "Examples:\n"
      "  partita bench\n"
      "  partita bench --threads 1 model.json\n"
      "  partita bench --policy=debug model.json      the same graph without fusion, for comparison");
  command->callback([options, &exit_code] { exit_code = bench(*options); });
}

}  // namespace partita::cli
