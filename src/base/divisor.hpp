// SPDX-License-Identifier: Apache-2.0
// Divisors, for parts of one size.
#pragma once

#include <algorithm>
#include <cstdint>

namespace partita {

/// The largest divisor of `n` >= 0 that is at most `most`, and at least 1.
inline int64_t largest_divisor(int64_t n, int64_t most) {
  int64_t divisor = std::max<int64_t>(std::min(n, most), 1);
  while (n % divisor != 0) --divisor;
  return divisor;
}

}  // namespace partita
