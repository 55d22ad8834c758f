// SPDX-License-Identifier: Apache-2.0
// The limit on the size of tensors.
#include "src/base/addressable.hpp"

#include <algorithm>

namespace partita {

bool addressable(const Dims& dims, const Dims& strides) {
  // What user space has on x86-64: as elements of up to 8 bytes more than there can be, with room to add up.
  constexpr int64_t kMost = int64_t{1} << 47;
  int64_t product = 1, last = 0;
  for (int i = 0; i < dims.size(); ++i) {
    const int64_t extent = std::max<int64_t>(dims[i], 1);
    int64_t reach = 0;
    if (dims[i] < 0 || strides[i] < 0) return false;
    if (__builtin_mul_overflow(product, extent, &product) || product >= kMost) return false;
    if (__builtin_mul_overflow(extent - 1, strides[i], &reach) || reach >= kMost) return false;
    last += reach;
    if (last >= kMost) return false;
  }
  return true;
}

}  // namespace partita
