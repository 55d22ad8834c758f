// SPDX-License-Identifier: Apache-2.0
// The table for people and the JSON file.
#pragma once

#include <benchmark/benchmark.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/machine.hpp"
#include "tests/bench/row.hpp"

namespace partita::bench {

/// Prints each row when Google Benchmark reports its run, and the groups' means at the end.
class TableReporter : public benchmark::BenchmarkReporter {
 public:
  /// Both must outlive the reporter; each run appends its row before it is reported.
  TableReporter(const Machine& machine, const std::vector<Row>& rows) : machine_(machine), rows_(rows) {}

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& report) override;
  void Finalize() override;

 private:
  const Machine& machine_;
  const std::vector<Row>& rows_;
  std::string group_;
};

/// The machine, for people and for programs.
std::string text_of(const Machine& machine);
/// Opens the file for figures, none for an empty path. False, and said on stderr, where it cannot be written.
bool open_json(const std::string& path, std::ofstream& file);
nlohmann::ordered_json machine_json(const Machine& machine);

/// What is wrong with a regular expression; empty where nothing is.
std::string check_filter(const std::string& filter);

/// Every figure, and the machine. Times are in milliseconds, microseconds for latencies.
std::string json_of(const Machine& machine, std::span<const Row> rows);

/// The rows of each group, in order of appearance.
std::vector<std::pair<std::string, std::vector<const Row*>>> grouped(std::span<const Row> rows);

}  // namespace partita::bench
