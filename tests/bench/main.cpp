// SPDX-License-Identifier: Apache-2.0
// partita_bench: Partita, oneDNN and the speed of memory side by side; `./dev bench` builds and runs it.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <regex>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/bench/case.hpp"
#include "tests/bench/graph_bench.hpp"
#include "tests/bench/report.hpp"

namespace partita::bench {
namespace {

struct Options {
  std::string filter;
  std::string json;
  Settings settings;
  bool list = false;
};

/// A case in one variant, ready to be run.
struct Planned {
  std::string name;
  std::function<Row(const Settings&)> run;
};

std::vector<Planned> everything() {
  std::vector<Planned> all;
  for (const auto& cases : {pool_backward_cases(), pool_chain_cases(), pool_extension_cases(), elementwise_cases(),
                            normalisation_cases(), movement_cases()})
    for (const Case& c : cases)
      for (Dtype dtype : c.dtypes)
        for (Order order : c.orders)
          all.push_back({str(c.group, "/", c.name, "/", name_of(dtype), "/", name_of(order)),
                         [c, dtype, order](const Settings& s) {
                           return run_case(c, {dtype, order}, s);
                         }});
  for (const auto& cases : {latency_cases(), c_interface_cases(), door_cases(), large_graph_cases()})
    for (const LatencyCase& c : cases)
      all.push_back({str(c.group, "/", c.name, "/f32/-"), [c](const Settings& s) { return run_latency(c, s); }});
  return all;
}

std::vector<Planned> chosen(const std::string& filter) {
  std::vector<Planned> all = everything();
  const std::regex wanted(filter, std::regex::ECMAScript | std::regex::icase);
  std::erase_if(all, [&](const Planned& p) { return !std::regex_search(p.name, wanted); });
  return all;
}

/// Google Benchmark repeats one function until its time is long enough and reports the mean. It cannot take turns
/// between functions or report medians of turns, so one iteration of its is a whole interleaved measurement.
/// Registration, order and reporting are the library's.
void add_benchmark(const Planned& planned, const Settings& settings, std::vector<Row>& rows) {
  benchmark::RegisterBenchmark(planned.name.c_str(),
                               [run = planned.run, settings, &rows](benchmark::State& state) {
                                 for (auto _ : state) {
                                   rows.push_back(run(settings));
                                   state.SetIterationTime(rows.back().partita.median);
                                 }
                                 if (!rows.back().error.empty()) state.SkipWithError(rows.back().error.c_str());
                               })
      ->Iterations(1)
      ->UseManualTime();
}

int report_failures(const std::vector<Row>& rows) {
  int failures = 0;
  for (const Row& row : rows) {
    if (row.error.empty()) continue;
    std::cerr << "partita_bench: " << row.group << "/" << row.name << "/" << name_of(row.variant.dtype) << "/"
              << name_of(row.variant.order) << ": " << row.error << '\n';
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}

int run(const Options& options) {
  const std::vector<Planned> planned = chosen(options.filter);
  if (planned.empty()) {
    std::cerr << "partita_bench: no case matches `" << options.filter << "`; --list shows all\n";
    return 1;
  }
  if (options.list) {
    for (const Planned& p : planned) std::cout << p.name << '\n';
    return 0;
  }
  std::ofstream json;
  if (!open_json(options.json, json)) return 1;
  limit_onednn_isa();
  Settings settings = options.settings;
  if (settings.threads == 0) settings.threads = omp_get_max_threads();
  omp_set_num_threads(settings.threads);

  std::vector<Row> rows;
  for (const Planned& p : planned) add_benchmark(p, settings, rows);
  const Machine machine = this_machine(settings.threads);
  TableReporter reporter(machine, rows);
  benchmark::RunSpecifiedBenchmarks(&reporter, "all");
  if (json.is_open()) json << json_of(machine, rows) << std::flush;
  return report_failures(rows);
}

}  // namespace

std::string check_filter(const std::string& filter) {
  try {
    (void)std::regex(filter);
  } catch (const std::regex_error&) {
    return "`" + filter + "` is no regular expression";
  }
  return {};
}

}  // namespace partita::bench

int main(int argc, char** argv) {
  using namespace partita::bench;
  Options options;
  options.settings.threads = 0;
  CLI::App app("Measures Partita, the same work as oneDNN primitives, and the speed of memory, side by side.",
               "./dev bench");
  app.add_option("--filter", options.filter, "Only cases whose name (see --list) matches; upper and lower case alike")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_filter, ""));
  app.add_option("--json", options.json, "Write every figure and the machine to FILE")->type_name("FILE");
  app.add_option("--min-time", options.settings.seconds, "Seconds each contender of a case is measured at least (0.15)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1e-6, 3600.0).description(""));
  app.add_option("--threads", options.settings.threads, "Threads; 0 means as many as OpenMP gives (0)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""));
  app.add_flag("--list", options.list, "Print the names of the cases");
  app.footer(
      "PARTITA_MAX_ISA=avx2 measures both with AVX2. How to read the table: docs/benchmarks.md.\n\n"
      "Examples:\n"
      "  ./dev bench --filter 'pooling backward/.*/f32'\n"
      "  ./dev bench --json figures.json --threads 1\n"
      "  ./dev bench graphs --filter resnet");
  std::optional<int> graphs;
  add_graphs(app, graphs);
  CLI11_PARSE(app, argc, argv);
  return graphs ? *graphs : run(options);
}
