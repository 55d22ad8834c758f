// SPDX-License-Identifier: Apache-2.0
// Row: everything that was found out about one case in one variant.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/measure.hpp"
#include "tests/bench/shape.hpp"

namespace partita::bench {

struct Row {
  std::string group, name;
  Variant variant{};
  bool small = false;  ///< a latency in microseconds: no traffic, no limit

  int partitions = 0;
  size_t bytes_read = 0, bytes_written = 0;  ///< the least that has to move
  size_t scratch_bytes = 0;                  ///< Partita's, beside inputs and outputs
  bool fits_cache = false;                   ///< all of it at once into the last-level cache
  std::vector<std::string> partita_kernels{}, onednn_kernels{};

  Timing partita{}, onednn{}, limit{};
  std::string refused{};  ///< by oneDNN, with its words; empty where it ran
  std::string error{};    ///< nothing was measured

  /// GB/s of the least traffic in Partita's time.
  std::optional<double> gigabytes_per_second() const {
    if (partita.turns == 0 || small) return {};
    return static_cast<double>(bytes_read + bytes_written) / partita.median / 1e9;
  }
  /// 1: as fast as memory.
  std::optional<double> times_limit() const { return ratio(limit); }
  /// 2: half of oneDNN's time.
  std::optional<double> times_onednn() const { return ratio(onednn); }

 private:
  std::optional<double> ratio(const Timing& other) const {
    if (partita.turns == 0 || other.turns == 0) return {};
    return other.median / partita.median;
  }
};

/// Of one ratio over the rows of one group.
struct Summary {
  double mean = 0;  ///< geometric
  const Row* worst = nullptr;
  int rows = 0;  ///< that have the ratio
};

inline Summary summary_of(const std::vector<const Row*>& rows, std::optional<double> (Row::*ratio)() const) {
  Summary found;
  double logarithms = 0;
  for (const Row* row : rows) {
    const std::optional<double> value = (row->*ratio)();
    if (!value) continue;
    logarithms += std::log(*value);
    ++found.rows;
    if (!found.worst || *value < (found.worst->*ratio)().value()) found.worst = row;
  }
  if (found.rows > 0) found.mean = std::exp(logarithms / found.rows);
  return found;
}

}  // namespace partita::bench
