// SPDX-License-Identifier: Apache-2.0
// Walk over a part of a box, run by run along its last axis.
#pragma once

#include <algorithm>

#include "src/base/shape.hpp"

namespace partita::jit {

/// run(at, count) for items [begin, end) of the box, row-major, as far as they follow each other along the last axis.
template <class F>
void each_run(int64_t begin, int64_t end, const Dims& extents, F run) {
  const int last = extents.size() - 1;
  for (Dims at = coordinates(begin, extents); begin < end;) {
    const int64_t count = std::min(end - begin, extents[last] - at[last]);
    run(at, count);
    begin += count;
    at[last] += count;
    for (int d = last; d > 0 && at[d] == extents[d]; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

}  // namespace partita::jit
