// SPDX-License-Identifier: Apache-2.0
// Layout of tables and JSON of `partita run`.
#include "src/cli/run_report.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/base/text.hpp"

namespace partita::cli {
namespace {

std::string number(const char* format, double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string gigabytes_per_second(double bytes, double ms) { return ms > 0 ? number("%.2f", bytes / ms / 1e6) : "-"; }

/// Names in order; one that stands several times in a row stands once with its count.
std::string counted(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0, next = 0; i < names.size(); i = next) {
    next = static_cast<size_t>(
        std::find_if(names.begin() + static_cast<long>(i), names.end(), [&](const auto& n) { return n != names[i]; }) -
        names.begin());
    text += str(i ? ", " : "", names[i]);
    if (next - i > 1) text += str(" x", next - i);
  }
  return text;
}

std::vector<std::string> kernels_of(const PartitionReport& p) {
  std::vector<std::string> names;
  for (const step_info& step : p.steps) names.push_back(step.kernel);
  return names;
}

using Row = std::vector<std::string>;
constexpr size_t kNumberColumns = 5;

Row row_of(const PartitionReport& p, size_t number_of_partition, bool verify) {
  return {std::to_string(number_of_partition),
          number("%.3f", p.compile_ms),
          number("%.3f", p.exec_ms),
          gigabytes_per_second(static_cast<double>(p.bytes), p.exec_ms),
          verify && p.supported ? number("%.1e", p.max_error) : "-",
          p.pattern,
          p.supported ? counted(kernels_of(p)) : "none: nothing to compute",
          join(p.op_names, ", ")};
}

/// Numbers to the right, text to the left, the last column as long as it is.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string gap(widths[c] - row[c].size(), ' ');
      if (c + 1 == row.size())
        text += str("  ", row[c], "\n");
      else
        text += str("  ", c < kNumberColumns ? gap + row[c] : row[c] + gap);
    }
  }
  return text;
}

nlohmann::ordered_json json_of(const PartitionReport& p) {
  return {{"id", p.id},
          {"ops", p.ops},
          {"pattern", p.pattern},
          {"supported", p.supported},
          {"kernels", kernels_of(p)},
          {"compile_ms", p.compile_ms},
          {"exec_ms", p.exec_ms},
          {"bytes", p.bytes}};
}

}  // namespace

ExitCode FileReport::exit_code() const {
  if (!error.empty()) return kFailure;
  return result && !result->mismatch.empty() ? kMismatch : kSuccess;
}

std::string table_of(const FileReport& report) {
  if (!report.result) return {};
  const GraphReport& r = *report.result;
  std::vector<Row> rows = {{"#", "compile ms", "run ms", "GB/s", "max error", "fused as", "kernels", "operators"}};
  double bytes = 0;
  for (const PartitionReport& p : r.partitions) {
    rows.push_back(row_of(p, rows.size(), report.verify));
    bytes += static_cast<double>(p.bytes);
  }
  std::string text = str(report.file, "\n", aligned(rows), "  ", r.ops, r.ops == 1 ? " operator in " : " operators in ",
                         r.partitions.size(), r.partitions.size() == 1 ? " partition" : " partitions", ": compiled in ",
                         number("%.2f", r.compile_ms), " ms, run in ", number("%.3f", r.exec_ms), " ms, ",
                         gigabytes_per_second(bytes, r.exec_ms), " GB/s");
  if (!r.mismatch.empty())
    text += str("\n  WRONG: ", r.mismatch);
  else if (report.verify)
    text += str(", agrees with the reference (max error ", number("%.1e", r.max_error), ")");
  return text + "\n";
}

std::string json_of(const FileReport& report) {
  const GraphReport none;
  const GraphReport& r = report.result ? *report.result : none;
  nlohmann::ordered_json partitions = nlohmann::ordered_json::array();
  for (const PartitionReport& p : r.partitions) partitions.push_back(json_of(p));
  const bool compared = report.verify && report.result;
  const std::string& error = report.error.empty() ? r.mismatch : report.error;
  nlohmann::ordered_json j = {
      {"file", report.file},        {"ops", report.ops},    {"partitions", std::move(partitions)},
      {"compile_ms", r.compile_ms}, {"exec_ms", r.exec_ms}, {"verified", nullptr},
      {"max_error", nullptr},       {"error", nullptr}};
  if (compared) {
    j["verified"] = r.verified;
    j["max_error"] = r.max_error;
  }
  if (!error.empty()) j["error"] = error;
  // Paths need not be UTF-8; the line must stay JSON all the same.
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace partita::cli
