// SPDX-License-Identifier: Apache-2.0
// Sizes, streaming and small tables of the pooling walks.
#include "kernels/jit/pool/walk.hpp"

#include <algorithm>
#include <numeric>

namespace partita::jit {

int64_t even_part(int64_t total, int64_t wanted) {
  const int64_t parts = std::max<int64_t>(1, (total + wanted / 2) / wanted);
  return (total + parts - 1) / parts;
}

bool on_lines(std::initializer_list<int64_t> distances) {
  return std::ranges::all_of(distances, [](int64_t distance) { return distance % kCacheLine == 0; });
}

std::vector<int32_t> numbers(int64_t count) {
  std::vector<int32_t> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

}  // namespace partita::jit
