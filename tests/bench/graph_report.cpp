// SPDX-License-Identifier: Apache-2.0
// Whole graphs as a table and as JSON.
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/base/text.hpp"
#include "tests/bench/graph_bench.hpp"
#include "tests/bench/report.hpp"

namespace partita::bench {
namespace {

constexpr int kNameWidth = 52;
constexpr size_t kWorst = 10;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 320> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string milliseconds(const Timing& timing) {
  const double value = timing.median * 1e3;
  return format(value < 0.1 ? "%9.4f" : value < 10 ? "%9.3f" : value < 100 ? "%9.2f" : "%9.1f", value);
}

std::string kilobytes(size_t bytes) { return format("%9.0f", static_cast<double>(bytes) / 1024); }

const char* const kGroups[] = {"inference", "training bound by memory", "training with products", "single operators"};

struct GroupFigures {
  double mean = 0;
  std::vector<const GraphRow*> rows;  ///< slowest against oneDNN first
};

GroupFigures figures_of(std::span<const GraphRow> rows, const std::string& group) {
  GroupFigures found;
  double logarithms = 0;
  for (const GraphRow& row : rows) {
    if (row.group != group || !row.times_onednn()) continue;
    found.rows.push_back(&row);
    logarithms += std::log(*row.times_onednn());
  }
  if (!found.rows.empty()) found.mean = std::exp(logarithms / static_cast<double>(found.rows.size()));
  std::ranges::sort(found.rows, std::less(), [](const GraphRow* row) { return *row->times_onednn(); });
  return found;
}

nlohmann::ordered_json timing_json(const Timing& timing) {
  if (timing.turns == 0) return nullptr;
  return {{"median", timing.median * 1e3}, {"least", timing.least * 1e3}, {"turns", timing.turns}};
}

}  // namespace

std::string graph_heading() {
  return format("%-*s %5s %5s %4s %9s %9s %9s %9s %9s\n", kNameWidth, "graph", "ops", "parts", "own", "Partita",
                "oneDNN", "x oneDNN", "scratch", "oneDNN's");
}

std::string graph_line(const GraphRow& row) {
  std::string text = format("%-*s %5d ", kNameWidth, row.name.c_str(), row.ops);
  if (!row.error.empty()) return str(text, "ERROR ", row.error, "\n");
  return text + format("%5d %4d %s %s %8.2f%c %s %s\n", row.partitions, row.own, milliseconds(row.partita).c_str(),
                       milliseconds(row.onednn).c_str(), *row.times_onednn(), row.channels_last ? 'L' : ' ',
                       kilobytes(row.partita_scratch).c_str(), kilobytes(row.onednn_scratch).c_str());
}

std::string graph_summary(std::span<const GraphRow> rows) {
  std::string text = "\nGeometric means of x oneDNN, and how many graphs are below 0.95\n";
  for (const char* group : kGroups) {
    const GroupFigures found = figures_of(rows, group);
    if (found.rows.empty()) continue;
    const auto slow = std::ranges::count_if(found.rows, [](const GraphRow* r) { return *r->times_onednn() < 0.95; });
    text += format("%-28s %6.2f of %3d   below 0.95: %d\n", group, found.mean, static_cast<int>(found.rows.size()),
                   static_cast<int>(slow));
    for (size_t i = 0; i < std::min(kWorst, found.rows.size()); ++i)
      text += format("  %6.2f  %s\n", *found.rows[i]->times_onednn(), found.rows[i]->name.c_str());
  }
  return text;
}

std::string graphs_json(const Machine& machine, std::span<const GraphRow> rows) {
  using Json = nlohmann::ordered_json;
  Json graphs = Json::array(), groups = Json::array();
  for (const GraphRow& row : rows)
    graphs.push_back({{"group", row.group},
                      {"graph", row.name},
                      {"operators", row.ops},
                      {"partitions", row.partitions},
                      {"own_kernels", row.own},
                      {"partita", timing_json(row.partita)},
                      {"onednn", timing_json(row.onednn)},
                      {"onednn_channels_last", row.channels_last},
                      {"times_onednn", row.times_onednn() ? Json(*row.times_onednn()) : Json(nullptr)},
                      {"scratch_bytes", row.partita_scratch},
                      {"onednn_scratch_bytes", row.onednn_scratch},
                      {"error", row.error}});
  for (const char* group : kGroups) {
    const GroupFigures found = figures_of(rows, group);
    if (found.rows.empty()) continue;
    groups.push_back({{"group", group},
                      {"mean", found.mean},
                      {"rows", found.rows.size()},
                      {"worst", *found.rows[0]->times_onednn()},
                      {"worst_graph", found.rows[0]->name}});
  }
  return Json{{"machine", machine_json(machine)}, {"graphs", graphs}, {"groups", groups}}.dump(2) + "\n";
}

}  // namespace partita::bench
