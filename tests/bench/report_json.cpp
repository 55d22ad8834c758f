// SPDX-License-Identifier: Apache-2.0
// The same figures for programs.
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/base/dtype.hpp"
#include "tests/bench/case.hpp"
#include "tests/bench/report.hpp"

namespace partita::bench {
namespace {

using Json = nlohmann::ordered_json;

Json timing_json(const Timing& timing, double factor) {
  if (timing.turns == 0) return nullptr;
  return {{"median", timing.median * factor}, {"least", timing.least * factor}, {"turns", timing.turns}};
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json row_json(const Row& row) {
  const double factor = row.small ? 1e6 : 1e3;
  return {{"group", row.group},
          {"case", row.name},
          {"type", name_of(row.variant.dtype)},
          {"layout", name_of(row.variant.order)},
          {"unit", row.small ? "us" : "ms"},
          {"partitions", row.partitions},
          {"bytes_read", row.bytes_read},
          {"bytes_written", row.bytes_written},
          {"scratch_bytes", row.scratch_bytes},
          {"fits_cache", row.fits_cache},
          {"partita", timing_json(row.partita, factor)},
          {"onednn", timing_json(row.onednn, factor)},
          {"limit", timing_json(row.limit, factor)},
          {"gigabytes_per_second", number(row.gigabytes_per_second())},
          {"times_limit", number(row.times_limit())},
          {"times_onednn", number(row.times_onednn())},
          {"partita_kernels", row.partita_kernels},
          {"onednn_kernels", row.onednn_kernels},
          {"onednn_refused", row.refused},
          {"error", row.error}};
}

Json summary_json(const Summary& summary, std::optional<double> (Row::*ratio)() const) {
  if (summary.rows == 0) return nullptr;
  const Row& worst = *summary.worst;
  return {{"mean", summary.mean},
          {"rows", summary.rows},
          {"worst", number((worst.*ratio)())},
          {"worst_case", worst.name},
          {"worst_type", name_of(worst.variant.dtype)},
          {"worst_layout", name_of(worst.variant.order)}};
}

}  // namespace

bool open_json(const std::string& path, std::ofstream& file) {
  if (path.empty()) return true;
  file.open(path);
  if (!file) std::cerr << "partita_bench: cannot write " << path << '\n';
  return file.good();
}

Json machine_json(const Machine& machine) {
  return {{"date", machine.date},
          {"cpu", machine.cpu},
          {"processors", machine.cpus},
          {"last_level_cache_bytes", machine.cache_bytes},
          {"threads", machine.threads},
          {"partita", machine.partita},
          {"partita_isa", machine.partita_isa},
          {"onednn", machine.onednn},
          {"onednn_isa", machine.onednn_isa}};
}

std::vector<std::pair<std::string, std::vector<const Row*>>> grouped(std::span<const Row> rows) {
  std::vector<std::pair<std::string, std::vector<const Row*>>> groups;
  for (const Row& row : rows) {
    auto at = std::ranges::find(groups, row.group, [](const auto& group) { return group.first; });
    if (at == groups.end()) at = groups.insert(at, {row.group, {}});
    at->second.push_back(&row);
  }
  return groups;
}

std::string json_of(const Machine& machine, std::span<const Row> rows) {
  Json cases = Json::array(), groups = Json::array();
  for (const Row& row : rows) cases.push_back(row_json(row));
  for (const auto& [name, members] : grouped(rows))
    groups.push_back({{"group", name},
                      {"times_limit", summary_json(summary_of(members, &Row::times_limit), &Row::times_limit)},
                      {"times_onednn", summary_json(summary_of(members, &Row::times_onednn), &Row::times_onednn)}});
  return Json{{"machine", machine_json(machine)}, {"cases", cases}, {"groups", groups}}.dump(2) + "\n";
}

}  // namespace partita::bench
