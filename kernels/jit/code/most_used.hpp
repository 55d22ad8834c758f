// SPDX-License-Identifier: Apache-2.0
// Which constants of code are worth a register.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace partita::jit {

/// Of the vectors of numbers that code reads, those that are read most often, `most` at the most.
inline std::vector<std::vector<int32_t>> most_used(const std::vector<std::vector<int32_t>>& reads, size_t most) {
  std::map<std::vector<int32_t>, int> uses;
  for (const std::vector<int32_t>& numbers : reads) ++uses[numbers];
  std::vector<std::pair<int, const std::vector<int32_t>*>> order;
  for (const auto& [numbers, count] : uses) order.emplace_back(-count, &numbers);
  std::ranges::stable_sort(order, {}, &std::pair<int, const std::vector<int32_t>*>::first);
  std::vector<std::vector<int32_t>> list;
  for (size_t k = 0; k < std::min(order.size(), most); ++k) list.push_back(*order[k].second);
  return list;
}

}  // namespace partita::jit
