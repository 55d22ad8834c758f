// SPDX-License-Identifier: Apache-2.0
// An aligned table, row by row as the figures come.
#include <array>
#include <cstdio>
#include <ostream>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/bench/case.hpp"
#include "tests/bench/report.hpp"

namespace partita::bench {
namespace {

constexpr int kNameWidth = 48;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

/// Three digits or more, in eight columns.
std::string time_text(const Timing& timing, bool small, const char* instead) {
  if (timing.turns == 0) return format("%8s", instead);
  const double value = timing.median * (small ? 1e6 : 1e3);
  return format(value < 10 ? "%8.3f" : value < 100 ? "%8.2f" : "%8.1f", value);
}

std::string ratio_text(const std::optional<double>& value, const char* pattern) {
  return value ? format(pattern, *value) : "";
}

/// What stands in the columns of a group's two contenders.
struct Columns {
  const char *first, *second, *ratio;
};

Columns columns_of(const std::string& group) {
  if (group == kDoors) return {"door", "C++", "x C++"};
  if (group == kLargeGraphs) return {"whole", "tenths", "x linear"};
  return {"Partita", "oneDNN", "x oneDNN"};
}

std::string heading(const std::string& group) {
  const Columns columns = columns_of(group);
  const bool micro = group == kLatencies || group == kDoors || group == kLargeGraphs;
  return format("\n%-*s %-4s %-6s %5s %8s %8s %8s %7s %8s %9s %8s\n", kNameWidth,
                str(group, " [", micro ? "us" : "ms", "]").c_str(), "type", "layout", "parts", columns.first,
                columns.second, "limit", "GB/s", "x limit", columns.ratio, micro ? "" : "scratch");
}

std::string line(const Row& row) {
  const std::string name = row.name + (row.fits_cache ? " *" : "");
  std::string text = format("%-*s %-4s %-6s ", kNameWidth, name.c_str(),
                            std::string(name_of(row.variant.dtype)).c_str(), name_of(row.variant.order));
  if (!row.error.empty()) return str(text, "ERROR ", row.error, "\n");
  text += format("%5d %s %s %s", row.partitions, time_text(row.partita, row.small, "").c_str(),
                 time_text(row.onednn, row.small, "refused").c_str(), time_text(row.limit, row.small, "").c_str());
  return str(text, format(" %7s %8s %9s %8s\n", ratio_text(row.gigabytes_per_second(), "%.1f").c_str(),
                          ratio_text(row.times_limit(), "%.2f").c_str(), ratio_text(row.times_onednn(), "%.2f").c_str(),
                          row.small ? "" : str((row.scratch_bytes + 1023) / 1024).c_str()));
}

std::string summary_line(const std::string& group, const char* what, const Summary& summary,
                         std::optional<double> (Row::*ratio)() const) {
  if (summary.rows == 0) return {};
  const Row& worst = *summary.worst;
  return format("%-24s %-9s mean %6.2f of %3d   worst %6.2f  %s %s %s\n", group.c_str(), what, summary.mean,
                summary.rows, (worst.*ratio)().value(), worst.name.c_str(),
                std::string(name_of(worst.variant.dtype)).c_str(), name_of(worst.variant.order));
}

}  // namespace

std::string text_of(const Machine& m) {
  return str(m.date, " UTC, ", m.cpu, ", ", m.cpus, " processors, last-level cache ", m.cache_bytes >> 20, " MiB, ",
             m.threads, m.threads == 1 ? " thread" : " threads", "\nPartita ", m.partita, " (", m.partita_isa,
             "), oneDNN ", m.onednn, " (", m.onednn_isa, ")\n");
}

bool TableReporter::ReportContext(const Context&) {
  GetOutputStream()
      << text_of(machine_)
      << "Medians of interleaved turns, caches emptied before each. GB/s: least traffic of the case in Partita's "
         "time.\n"
      << "x limit: memory's time for that traffic / Partita's. x oneDNN: its time / Partita's. *: fits the cache.\n";
  return true;
}

void TableReporter::ReportRuns(const std::vector<Run>&) {
  if (rows_.empty()) return;
  const Row& row = rows_.back();
  if (row.group != group_) GetOutputStream() << heading(row.group);
  group_ = row.group;
  GetOutputStream() << line(row) << std::flush;
}

void TableReporter::Finalize() {
  std::ostream& out = GetOutputStream();
  out << "\nGeometric means and worst cases\n";
  for (const auto& [group, rows] : grouped(rows_)) {
    out << summary_line(group, "x limit", summary_of(rows, &Row::times_limit), &Row::times_limit)
        << summary_line(group, columns_of(group).ratio, summary_of(rows, &Row::times_onednn), &Row::times_onednn);
  }
  out << std::flush;
}

}  // namespace partita::bench
